#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>

namespace treadle::optimizers {

/// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, arXiv:2302.06675):
///
///     c <- beta1 * m + (1 - beta1) * g
///     p <- p - rate * (sign(c) + weight_decay * p)
///     m <- beta2 * m + (1 - beta2) * g
class Lion final : public Optimizer {
 public:
  explicit Lion(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kMomentum };

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;

  void update_tensors(ParameterView& view) const;
  template <typename T>
  void update_as(const HostParameters& host) const;

  double learning_rate_;
  double beta1_;
  double beta2_;
  double weight_decay_;
};

}  // namespace treadle::optimizers
