#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>

namespace treadle::optimizers {

/// Stochastic gradient descent, as torch.optim.SGD:
///
///     g <- g + weight_decay * p
///     b <- momentum * b + (1 - dampening) * g        (the first b is g)
///     p <- p - rate * (g + momentum * b  if nesterov, else b)
///
/// Without momentum p <- p - rate * g, and nothing is remembered. "The first" counts per segment.
class Sgd final : public Optimizer {
 public:
  explicit Sgd(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kMomentum };

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;

  void update_tensors(ParameterView& view) const;
  template <typename T>
  void descend(const HostParameters& host) const;
  template <typename T>
  void roll(const HostParameters& host) const;

  double learning_rate_;
  double momentum_;
  double dampening_;
  double weight_decay_;
  bool nesterov_;
};

}  // namespace treadle::optimizers
