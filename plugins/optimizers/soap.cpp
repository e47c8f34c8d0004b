#include "soap.h"

#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>

#include "element_type.h"

namespace treadle::optimizers {
namespace {

at::Tensor transposed(const at::Tensor& matrices) {
  return matrices.transpose(1, 2);
}

/// Columns in the order of falling eigenvalues.
at::Tensor eigenvectors(const at::Tensor& symmetric) {
  const at::Tensor unit = at::eye(symmetric.size(1), symmetric.options());
  return std::get<1>(at::linalg_eigh(symmetric + 1e-30 * unit)).flip({2});
}

struct Turned {
  at::Tensor basis;
  at::Tensor order;  // int64 [n, side]: the columns that it had before
};

/// One power iteration.
Turned turned(const at::Tensor& symmetric, const at::Tensor& basis) {
  const at::Tensor product = at::bmm(symmetric, basis);
  const at::Tensor estimates = (basis * product).sum({1});
  const at::Tensor order = estimates.argsort(/*dim=*/1, /*descending=*/true);
  const at::Tensor sorted = product.gather(2, order.unsqueeze(1).expand_as(product));
  return {std::get<0>(at::linalg_qr(sorted)), order};
}

}  // namespace

at::Tensor Soap::Basis::to(const at::Tensor& matrices) const {
  at::Tensor result = left.defined() ? at::bmm(transposed(left), matrices) : matrices;
  return right.defined() ? at::bmm(result, right) : result;
}

at::Tensor Soap::Basis::from(const at::Tensor& matrices) const {
  at::Tensor result = left.defined() ? at::bmm(left, matrices) : matrices;
  return right.defined() ? at::bmm(result, transposed(right)) : result;
}

Soap::Soap(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      eps_(config.get<double>("eps")),
      weight_decay_(config.get<double>("weight_decay")),
      precondition_frequency_(config.get<std::int64_t>("precondition_frequency")),
      max_precond_dim_(config.get<std::int64_t>("max_precond_dim")) {
  const auto betas = config.get<std::vector<double>>("betas");
  beta1_ = betas.at(0);
  beta2_ = betas.at(1);
}

std::vector<SlotSpec> Soap::do_slots() const {
  const auto slot = [most = max_precond_dim_](const char* name, auto side_of) -> SlotSpec {
    return {name, SlotSpec::Kind::kTensor, 0, SlotSpec::Storage::kFull,
            [most, side_of](const Segment& segment) -> std::vector<std::int64_t> {
              const Matrices matrices = matrices_of(segment);
              const std::int64_t side = side_of(matrices);
              if (matrices.count == 0 || side > most)
                return {0};
              return {matrices.count, side, side};
            }};
  };
  const auto rows = [](const Matrices& matrices) { return matrices.rows; };
  const auto columns = [](const Matrices& matrices) { return matrices.columns; };
  return {{"first_moment"},       {"second_moment"},        slot("left", rows),
          slot("right", columns), slot("left_basis", rows), slot("right_basis", columns)};
}

void Soap::do_update(ParameterView& view) const {
  for (const ParameterPiece& layer : view.layers()) {
    const Matrices shape = matrices_of(layer.segment());
    if (shape.count > 0)
      update_matrices(layer, shape, view.learning_rate());
    else
      update_vector(layer, view.learning_rate());
  }
}

/// `count`: of updates after the one that began the preconditioner.
at::Tensor Soap::step_size(const at::Tensor& rate, double count) const {
  return rate * (std::sqrt(1 - std::pow(beta2_, count)) / (1 - std::pow(beta1_, count)));
}

void Soap::update_matrices(const ParameterPiece& layer, Matrices shape,
                           const at::Tensor& rate) const {
  const at::Tensor g = shape.view(layer.gradients());
  const auto step = layer.updates().item<double>() - 1;
  const bool has_left = has_basis(shape.rows);
  const bool has_right = has_basis(shape.columns);
  const at::Tensor left =
      has_left ? at::lerp(layer.slot(kLeft), at::bmm(g, transposed(g)), 1 - beta2_) : at::Tensor();
  const at::Tensor right = has_right
                               ? at::lerp(layer.slot(kRight), at::bmm(transposed(g), g), 1 - beta2_)
                               : at::Tensor();
  if (has_left)
    layer.set_slot(kLeft, left);
  if (has_right)
    layer.set_slot(kRight, right);
  if (step < 1) {  // -1: the first was skipped on a device
    if (has_left)
      layer.set_slot(kLeftBasis, eigenvectors(left));
    if (has_right)
      layer.set_slot(kRightBasis, eigenvectors(right));
    return;
  }
  Basis basis{has_left ? layer.slot(kLeftBasis) : at::Tensor(),
              has_right ? layer.slot(kRightBasis) : at::Tensor()};
  const at::Tensor& p = layer.parameters();
  const at::Tensor turned_g = basis.to(g);
  at::Tensor m = beta1_ * shape.view(layer.slot(kFirstMoment)) + (1 - beta1_) * turned_g;
  at::Tensor v =
      beta2_ * shape.view(layer.slot(kSecondMoment)) + (1 - beta2_) * (turned_g * turned_g);
  const at::Tensor direction =
      basis.from(m / (v.sqrt() + above_zero(eps_, p.scalar_type()))).reshape(p.sizes());
  const at::Tensor moved = p - step_size(rate, step) * direction;
  const bool is_due = std::fmod(step, static_cast<double>(precondition_frequency_)) == 0;
  if (is_due && (has_left || has_right)) {
    m = basis.from(m);
    if (has_left) {
      Turned now = turned(left, basis.left);
      v = v.gather(1, now.order.unsqueeze(2).expand_as(v));
      basis.left = std::move(now.basis);
      layer.set_slot(kLeftBasis, basis.left);
    }
    if (has_right) {
      Turned now = turned(right, basis.right);
      v = v.gather(2, now.order.unsqueeze(1).expand_as(v));
      basis.right = std::move(now.basis);
      layer.set_slot(kRightBasis, basis.right);
    }
    m = basis.to(m);
  }
  layer.set_slot(kFirstMoment, m.reshape(p.sizes()));
  layer.set_slot(kSecondMoment, v.reshape(p.sizes()));
  layer.set_parameters(weight_decay_ == 0 ? moved : moved - rate * weight_decay_ * moved);
}

void Soap::update_vector(const ParameterPiece& layer, const at::Tensor& rate) const {
  const auto step = layer.updates().item<double>() - 1;
  if (step < 1)
    return;
  const at::Tensor& p = layer.parameters();
  const at::Tensor& g = layer.gradients();
  const at::Tensor m = beta1_ * layer.slot(kFirstMoment) + (1 - beta1_) * g;
  const at::Tensor v = beta2_ * layer.slot(kSecondMoment) + (1 - beta2_) * (g * g);
  const at::Tensor moved =
      p - step_size(rate, step) * (m / (v.sqrt() + above_zero(eps_, p.scalar_type())));
  layer.set_slot(kFirstMoment, m);
  layer.set_slot(kSecondMoment, v);
  layer.set_parameters(weight_decay_ == 0 ? moved : moved - rate * weight_decay_ * moved);
}

std::string Soap::do_rule_of(const Segment& segment) const {
  const Matrices shape = matrices_of(segment);
  if (shape.count == 0)
    return segment.role == ParameterRole::kTable ? "adam (table)" : "adam";
  if (has_basis(shape.rows) && has_basis(shape.columns))
    return "soap";
  return has_basis(shape.rows)      ? "soap (rows only)"
         : has_basis(shape.columns) ? "soap (columns only)"
                                    : "adam (larger than max_precond_dim)";
}

void* Soap::do_ask(std::string_view interface_id) {
  return interface_id == NamesRules::kInterface ? static_cast<NamesRules*>(this) : nullptr;
}

}  // namespace treadle::optimizers
