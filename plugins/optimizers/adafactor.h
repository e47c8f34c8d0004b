#pragma once

#include <optional>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/optimizer_abilities.h>

namespace treadle::optimizers {

/// Adafactor (Shazeer & Stern 2018, arXiv:1804.04235), as torch.optim.Adafactor: the second moment
/// of a matrix is the product of a vector for its rows and one for its columns. In update t:
///
///     rho   <- min(rate, 1 / sqrt(t));   alpha <- max(eps2, rms(p)) * rho
///     p     <- (1 - rate * weight_decay) * p
///     r, c  <- running means of g^2 over columns and over rows, with weight t^beta2_decay
///     V     <- r c^T / max(mean(r), eps1)                     (of vectors, the mean of g^2 itself)
///     u     <- g / sqrt(max(V, eps1^2))
///     p     <- p - alpha * u / max(1, rms(u) / d)
///
/// Of a tensor of more dimensions the last two are rows and columns. Without eps1 it
/// is the distance of 1 to the next number of the parameters' dtype.
class Adafactor final : public Optimizer, public NamesRules {
 public:
  explicit Adafactor(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kRowVariance, kColumnVariance, kVariance };

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;
  std::string do_rule_of(const Segment& segment) const override;
  void* do_ask(std::string_view interface_id) override;

  at::Tensor factored_variance(const ParameterPiece& layer, const at::Tensor& weight,
                               double eps) const;

  double learning_rate_;
  double beta2_decay_;
  std::optional<double> eps1_;
  double eps2_;
  double d_;
  double weight_decay_;
};

}  // namespace treadle::optimizers
