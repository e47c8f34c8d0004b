#include "dense.h"

#include <numeric>
#include <string>

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/plan_ops.h>

#include "initialisers.h"

namespace treadle::layers {
namespace {

std::int64_t asked_width(const LayerSpec& spec) {
  if (spec.outputs.empty())
    throw DataError(
        "a head is as wide as the loss asks for, but here no loss is known; use dense with units");
  return std::accumulate(
      spec.outputs.begin(), spec.outputs.end(), std::int64_t{0},
      [](std::int64_t sum, const OutputSpec& output) { return sum + output.width; });
}

}  // namespace

Dense::Dense(const Config& config, const LayerSpec& spec)
    : Dense(config, spec, config.get<std::int64_t>("units")) {}

Dense::Dense(const Config& config, const LayerSpec& spec, std::int64_t units) {
  only_input(spec);
  const std::int64_t in = expect_at_least(spec, 2, "rows of numbers [B, width]").width();
  weight_ = register_parameter("weight", at::empty({units, in}, spec.dtype));
  if (config.get<bool>("bias"))
    bias_ = register_parameter("bias", at::empty({units}, spec.dtype));
  initialise(initialiser(config.get<std::string>("init")), weight_, bias_);
}

at::Tensor Dense::forward(const Inputs& inputs, LayerContext&) {
  return at::linear(inputs[0], weight_, bias_);
}

std::optional<PlanValue> Dense::plan(PlanBuilder& builder,
                                     std::span<const PlanValue> inputs) const {
  // With a bias, libtorch multiplies more dimensions in another way.
  const std::size_t dimensions = builder.spec(inputs[0]).sizes.size();
  if (dimensions != 2 && dimensions != 3)
    return std::nullopt;
  return builder.apply(plan_linear(weight_, bias_), inputs[0]);
}

Head::Head(const Config& config, const LayerSpec& spec) : Dense(config, spec, asked_width(spec)) {}

}  // namespace treadle::layers
