#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/optimizer_abilities.h>

#include "adamw_rest.h"
#include "matrices.h"

namespace treadle::optimizers {

/// Muon (Jordan et al. 2024) for the matrices of hidden layers, AdamW for all other parameters:
///
///     m <- momentum * m + (1 - momentum) * g
///     u <- (1 - momentum) * g + momentum * m                  (m, without nesterov)
///     p <- p - rate * weight_decay * p - rate * factor * newton_schulz(u)
///
/// The factor is sqrt(max(1, rows / columns)) for "original", 0.2 * sqrt(max(rows, columns)) for
/// "match_rms_adamw", with which rates of AdamW fit. With cautious_weight_decay only elements
/// shrink that the step does not move away from 0.
///
/// A matrix of a hidden layer is a parameter of role kHidden or kStack with at least two rows and
/// two columns; see Matrices. Embeddings, output layers and tied weights are AdamW's. So are
/// vectors.
class Muon final : public Optimizer, public NamesRules {
 public:
  explicit Muon(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kFirstMoment, kSecondMoment };
  using Layers = std::vector<const ParameterPiece*>;

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;
  std::string do_rule_of(const Segment& segment) const override;
  void* do_ask(std::string_view interface_id) override;

  void update_matrices(const Layers& layers, Matrices shape, const at::Tensor& rate) const;
  void move(const ParameterPiece& layer, const at::Tensor& direction, const at::Tensor& rate) const;
  double factor_of(Matrices shape) const;

  double learning_rate_;
  double momentum_;
  bool nesterov_;
  double weight_decay_;
  bool is_cautious_;
  bool matches_adamw_;
  double rest_share_;  // of the rate: AdamW's
  AdamWRest rest_;
};

}  // namespace treadle::optimizers
