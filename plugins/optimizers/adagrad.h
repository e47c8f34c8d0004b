#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>

namespace treadle::optimizers {

/// Adagrad (Duchi, Hazan & Singer 2011), as torch.optim.Adagrad:
///
///     g <- g + weight_decay * p
///     s <- s + g^2                              (the first s is initial_accumulator_value)
///     p <- p - rate / (1 + (t - 1) * learning_rate_decay) * g / (sqrt(s) + eps)
///
/// t counts the updates of one segment.
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kSquareSum };

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;

  void update_tensors(ParameterView& view) const;
  template <typename T>
  void update_as(const HostParameters& host) const;

  double learning_rate_;
  double learning_rate_decay_;
  double initial_accumulator_value_;
  double eps_;
  double weight_decay_;
};

}  // namespace treadle::optimizers
