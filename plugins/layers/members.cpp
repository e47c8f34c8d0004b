#include "members.h"

#include <cmath>
#include <string>
#include <vector>

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

namespace treadle::layers {
namespace {

/// The number of members, and the width of what they are given.
struct Sizes {
  Sizes(const Config& config, const LayerSpec& spec)
      : members(config.get<std::int64_t>("members")),
        in(expect_at_least(spec, 2, "rows of numbers [B, width], or [B, members, width]").width()),
        units(config.get<std::int64_t>("out_features")) {
    const TensorSpec& stream = only_input(spec);
    if (stream.sizes.size() > 3 || (stream.sizes.size() == 3 && stream.sizes[1] != members)) {
      throw DataError("has " + std::to_string(members) + " members and takes [B, width], or [B, " +
                      std::to_string(members) + ", width], got " + stream.text());
    }
  }

  std::int64_t members;
  std::int64_t in;
  std::int64_t units;
};

at::Tensor of_each_member(const at::Tensor& x) {
  return x.dim() == 2 ? x.unsqueeze(1) : x;
}

}  // namespace

BatchEnsembleDense::BatchEnsembleDense(const Config& config, const LayerSpec& spec) {
  const Sizes sizes(config, spec);
  const bool has_all = config.get<std::string>("adapters") == "all";
  const double bound = 1 / std::sqrt(static_cast<double>(sizes.in));
  const auto scaling = config.get<std::string>("scaling_init");
  r_ = register_parameter("r", at::ones({sizes.members, sizes.in}, spec.dtype));
  weight_ = register_parameter("weight", at::empty({sizes.units, sizes.in}, spec.dtype));
  if (has_all)
    s_ = register_parameter("s", at::ones({sizes.members, sizes.units}, spec.dtype));
  if (config.get<bool>("bias")) {
    bias_ = register_parameter("bias", has_all ? at::empty({sizes.members, sizes.units}, spec.dtype)
                                               : at::empty({sizes.units}, spec.dtype));
  }
  const at::NoGradGuard no_gradients;
  if (scaling == "random_signs") {
    r_.bernoulli_(0.5).mul_(2).sub_(1);
  } else if (scaling == "normal") {
    r_.normal_();
  }
  weight_.uniform_(-bound, bound);
  if (bias_.defined())
    bias_.copy_(at::empty({sizes.units}, spec.dtype).uniform_(-bound, bound));
}

at::Tensor BatchEnsembleDense::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor scaled = of_each_member(inputs[0]).mul(r_);
  if (!s_.defined())
    return linear_in_precision(scaled, weight_, bias_);
  const at::Tensor result = linear_in_precision(scaled, weight_, {}).mul(s_);
  return bias_.defined() ? result.add(bias_) : result;
}

EnsembleDense::EnsembleDense(const Config& config, const LayerSpec& spec) {
  const Sizes sizes(config, spec);
  const double bound = 1 / std::sqrt(static_cast<double>(sizes.in));
  weight_ =
      register_parameter("weight", at::empty({sizes.members, sizes.in, sizes.units}, spec.dtype));
  if (config.get<bool>("bias"))
    bias_ = register_parameter("bias", at::empty({sizes.members, sizes.units}, spec.dtype));
  const at::NoGradGuard no_gradients;
  weight_.uniform_(-bound, bound);
  if (bias_.defined())
    bias_.uniform_(-bound, bound);
}

NamesParameterRoles::Roles EnsembleDense::parameter_roles() const {
  Roles roles = all(ParameterRole::kTable, {bias_});
  roles.emplace_back(weight_, ParameterRole::kStack);
  return roles;
}

at::Tensor EnsembleDense::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor by_row = of_each_member(inputs[0]);
  const at::Tensor by_member =
      by_row.expand({by_row.size(0), weight_.size(0), by_row.size(2)}).transpose(0, 1);
  const at::Tensor result = bias_.defined() ? at::baddbmm(bias_.unsqueeze(1), by_member, weight_)
                                            : at::bmm(by_member, weight_);
  return result.transpose(0, 1);
}

}  // namespace treadle::layers
