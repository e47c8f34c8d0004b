#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/optimizer_abilities.h>

namespace treadle::optimizers {

/// Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682). Gradients are taken at y, between
/// the iterates z of AdamW without a first moment and their running mean x, which is evaluated:
///
///     rate_t <- rate * min(1, t / warmup_steps)
///     v <- beta2 * v + (1 - beta2) * g^2
///     u <- g / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * y
///     w <- t^r * (largest rate_t so far)^weight_lr_power;   c <- w / (sum of all w)
///     z <- z - rate_t * u;   x <- (1 - c) * x + c * z;   y <- (1 - beta1) * z + beta1 * x
///
/// The parameters are y. The slot is d = z - y, so a parameter that was never updated has x = y:
///
///     y <- y + c * d - rate_t * (1 - beta1 * (1 - c)) * u
///     d <- (1 - c) * (d - rate_t * beta1 * u)
///     x  = y - (1 / beta1 - 1) * d
///
/// t counts the updates of one segment.
class ScheduleFreeAdamW final : public Optimizer, public EvaluationWeights {
 public:
  explicit ScheduleFreeAdamW(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kDistance, kSecondMoment, kLargestRate, kWeightSum };

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;
  at::Tensor do_evaluation_weights(const at::Tensor& parameters,
                                   const OptimizerSlots& slots) const override;
  void* do_ask(std::string_view interface_id) override;

  void update_tensors(ParameterView& view) const;
  template <typename T>
  void update_as(const HostParameters& host) const;

  double learning_rate_;
  double beta1_;
  double beta2_;
  double eps_;
  double weight_decay_;
  double warmup_steps_;
  double r_;
  double weight_lr_power_;
};

}  // namespace treadle::optimizers
