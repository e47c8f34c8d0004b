#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>

namespace treadle::optimizers {

/// LAMB (You et al., "Large Batch Optimization for Deep Learning", 2020, arXiv:1904.00962):
/// AdamW's direction, made as long for each layer as the layer's parameters are.
///
///     m <- beta1 * m + (1 - beta1) * g
///     v <- beta2 * v + (1 - beta2) * g^2
///     u <- (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p
///     p <- p - rate * (|p| / |u|) * u           (rate * u, where |p| or |u| is 0)
///
/// A layer is a segment: a weight and its bias are two. t counts the updates of one segment.
class Lamb final : public Optimizer {
 public:
  explicit Lamb(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kFirstMoment, kSecondMoment };

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;

  void update_tensors(ParameterView& view) const;
  template <typename T>
  void update_as(const HostParameters& host) const;

  double learning_rate_;
  double beta1_;
  double beta2_;
  double eps_;
  double weight_decay_;
};

}  // namespace treadle::optimizers
