#pragma once

#include <cstdint>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/optimizer_abilities.h>

#include "matrices.h"

namespace treadle::optimizers {

/// SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the eigenbasis of Shampoo's preconditioners.
/// Of a matrix with gradient G, whose update number t counts from 0:
///
///     L <- beta2 * L + (1 - beta2) * G G^T            R <- beta2 * R + (1 - beta2) * G^T G
///     t = 0: L and R begin; QL, QR are their eigenvectors; the parameter stays as it is
///     else:  H = QL^T G QR;  m, v and N as Adam's for H (m and v in that basis)
///            p <- p - rate * QL N QR^T;   p <- p - rate * weight_decay * p
///            every precondition_frequency updates: QL <- orthogonal part of the QR decomposition
///            of L QL, columns ordered by diag(QL^T L QL) first, and QR alike
///
/// A side longer than max_precond_dim keeps its own basis: it has neither L nor QL. Vectors and
/// tables have none at all and are updated by Adam, from their second update. Kernels are
/// flattened; see Matrices.
///
/// Decompositions are on the device of the parameters. Whether one is due is read from it, so a
/// step waits there.
class Soap final : public Optimizer, public NamesRules {
 public:
  explicit Soap(const Config& config);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kFirstMoment, kSecondMoment, kLeft, kRight, kLeftBasis, kRightBasis };
  /// [n, rows, columns]
  struct Basis {
    at::Tensor left;   // [n, rows, rows]; undefined: the unit matrix
    at::Tensor right;  // [n, columns, columns]; undefined: the same

    at::Tensor to(const at::Tensor& matrices) const;
    at::Tensor from(const at::Tensor& matrices) const;
  };

  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override;
  void do_update(ParameterView& view) const override;
  std::string do_rule_of(const Segment& segment) const override;
  void* do_ask(std::string_view interface_id) override;

  void update_matrices(const ParameterPiece& layer, Matrices shape, const at::Tensor& rate) const;
  void update_vector(const ParameterPiece& layer, const at::Tensor& rate) const;
  at::Tensor step_size(const at::Tensor& rate, double count) const;
  bool has_basis(std::int64_t side) const { return side <= max_precond_dim_; }

  double learning_rate_;
  double beta1_;
  double beta2_;
  double eps_;
  double weight_decay_;
  std::int64_t precondition_frequency_;
  std::int64_t max_precond_dim_;
};

}  // namespace treadle::optimizers
