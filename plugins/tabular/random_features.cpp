#include "random_features.h"

#include <cmath>
#include <numbers>

#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sin.h>

#include <treadle/core/model/linear.h>
#include <treadle/plan/op.h>
#include <treadle/plan/ops.h>

#include "stream.h"

namespace treadle::tabular {

RandomFourierFeatures::RandomFourierFeatures(const Config& config, const LayerSpec& spec) {
  const std::int64_t width = width_of_rows(spec);
  const auto count = config.get<std::int64_t>("out_features");
  const double gamma = config.get_or("gamma", 1 / static_cast<double>(width));
  weight_ = register_buffer("weight",
                            at::empty({count, width}, spec.dtype).normal_(0, std::sqrt(2 * gamma)));
  bias_ = register_buffer("bias", at::empty({count}, spec.dtype).uniform_(0, 2 * std::numbers::pi));
}

double RandomFourierFeatures::size() const {
  return std::sqrt(2 / static_cast<double>(bias_.size(0)));
}

at::Tensor RandomFourierFeatures::forward(const Inputs& inputs, LayerContext&) {
  return at::cos(linear_in_precision(inputs[0], weight_, bias_)).mul(size());
}

std::optional<PlanValue> RandomFourierFeatures::lower(PlanBuilder& builder,
                                                      std::span<const PlanValue> inputs) const {
  const PlanValue angle = builder.apply(plan_linear(weight_, bias_), inputs[0]);
  const PlanValue cosine = builder.apply(
      plan_function({"cos",
                     [](at::Tensor& out, const Inputs& in) { at::cos_out(out, in[0]); },
                     [](const PlanGradients& of) {
                       at::sin_out(of.of_inputs[0], of.inputs[0]);
                       of.of_inputs[0].neg_().mul_(of.of_output);
                     },
                     {.output = false}}),
      angle);
  return builder.elementwise(ElementwiseOp::kScale, cosine, size());
}

}  // namespace treadle::tabular
