#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>

namespace treadle::optimizers {

/// RMSprop (Hinton 2012), as torch.optim.RMSprop:
///
///     g <- g + weight_decay * p
///     v <- alpha * v + (1 - alpha) * g^2
///     d <- g / (sqrt(v) + eps)                  (sqrt(v + eps), with eps_inside_root)
///     p <- p - rate * d
///
/// centered: v - a^2 in place of v, where a <- alpha * a + (1 - alpha) * g, but never less than 0.
/// momentum: b <- momentum * b + d in place of d.
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(const Config& config);

 private:
  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;

  void update_tensors(ParameterView& view) const;
  template <typename T, bool kCentered, bool kMomentum>
  void update_as(const HostParameters& host) const;

  double learning_rate_;
  double alpha_;
  double eps_;
  bool eps_inside_root_;
  double momentum_;
  bool centered_;
  double weight_decay_;
};

}  // namespace treadle::optimizers
