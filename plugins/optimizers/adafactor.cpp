#include "adafactor.h"

#include <cmath>
#include <limits>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pow.h>

namespace treadle::optimizers {
namespace {

using Sizes = std::vector<std::int64_t>;

bool is_factored(const Segment& segment) {
  return segment.shape.size() > 1;
}

/// Of the segment, with 1 in place of the size that is `from_end` sizes before the end.
Sizes reduced(const Segment& segment, std::size_t from_end) {
  if (!is_factored(segment))
    return {0};
  Sizes sizes = segment.shape;
  sizes[sizes.size() - from_end] = 1;
  return sizes;
}

at::Tensor rms(const at::Tensor& values) {
  return values.square().mean().sqrt();
}

}  // namespace

Adafactor::Adafactor(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      beta2_decay_(config.get<double>("beta2_decay")),
      eps1_(config.find<double>("eps1")),
      eps2_(config.get<double>("eps2")),
      d_(config.get<double>("d")),
      weight_decay_(config.get<double>("weight_decay")) {}

std::vector<SlotSpec> Adafactor::do_slots() const {
  const auto slot = [](const char* name, Sizes (*shape)(const Segment&)) -> SlotSpec {
    return {name, SlotSpec::Kind::kTensor, 0, SlotSpec::Storage::kFull, shape};
  };
  return {slot("row_variance", [](const Segment& segment) { return reduced(segment, 1); }),
          slot("column_variance", [](const Segment& segment) { return reduced(segment, 2); }),
          slot("variance", [](const Segment& segment) {
            return is_factored(segment) ? Sizes{0} : segment.shape;
          })};
}

void Adafactor::do_update(ParameterView& view) const {
  const double least = view.dtype() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                   : std::numeric_limits<float>::epsilon();
  const double eps = eps1_.value_or(least);
  const at::Tensor& rate = view.learning_rate();
  for (const ParameterPiece& layer : view.layers()) {
    const at::Tensor& t = layer.updates();
    const at::Tensor& g = layer.gradients();
    const at::Tensor& p = layer.parameters();
    const at::Tensor weight = at::pow(t, beta2_decay_).to(p.scalar_type());
    at::Tensor variance;
    if (is_factored(layer.segment())) {
      variance = factored_variance(layer, weight, eps);
    } else {
      variance = at::lerp(layer.slot(kVariance), g.square(), weight);
      layer.set_slot(kVariance, variance);
    }
    const at::Tensor u = variance.clamp_min(eps * eps).rsqrt() * g;
    const at::Tensor alpha = rms(p).clamp_min(eps2_) * at::minimum(rate, t.rsqrt());
    const at::Tensor moved = alpha / (rms(u) / d_).clamp_min(1) * u;
    layer.set_parameters((weight_decay_ == 0 ? p : p - rate * weight_decay_ * p) - moved);
  }
}

/// The means first, and then their product: it stays finite where g^4 would not.
at::Tensor Adafactor::factored_variance(const ParameterPiece& layer, const at::Tensor& weight,
                                        double eps) const {
  const at::Tensor squares = layer.gradients().square();
  const at::Tensor rows = at::lerp(layer.slot(kRowVariance), squares.mean({-1}, true), weight);
  const at::Tensor columns =
      at::lerp(layer.slot(kColumnVariance), squares.mean({-2}, true), weight);
  layer.set_slot(kRowVariance, rows);
  layer.set_slot(kColumnVariance, columns);
  return rows / rows.mean({-2}, true).clamp_min(eps) * columns;
}

std::string Adafactor::do_rule_of(const Segment& segment) const {
  return is_factored(segment) ? "factored" : "variance of each element";
}

void* Adafactor::do_ask(std::string_view interface_id) {
  return interface_id == NamesRules::kInterface ? static_cast<NamesRules*>(this) : nullptr;
}

}  // namespace treadle::optimizers
