#include "numeric_embeddings.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

namespace treadle::layers {
namespace {

using Edges = std::vector<double>;

/// The edges of bins for each feature, or one list for all.
std::vector<Edges> edges_in(const Config& config) {
  const nlohmann::json& bins = config.json().at("bins");
  if (bins.is_number()) {
    const auto count = bins.get<std::int64_t>();
    const auto range = config.has("range") ? config.get<Edges>("range") : Edges{-3, 3};
    Edges edges;
    for (std::int64_t i = 0; i <= count; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(count);
      edges.push_back(range[0] * (1 - share) + range[1] * share);
    }
    return {edges};
  }
  if (bins.front().is_array())
    return bins.get<std::vector<Edges>>();
  return {bins.get<Edges>()};
}

}  // namespace

void NumericEmbedding::check(const Config& config) {
  if (config.has("embedding_dim"))
    return;
  for (const char* const key : {"activation", "lite"}) {
    if (config.has(key) && config.json().at(key) != false) {
      config.fail(key,
                  "is about the linear map behind the encoding, and there is none: give "
                  "\"embedding_dim\" as well");
    }
  }
}

NumericEmbedding::NumericEmbedding(const Config& config, const LayerSpec& spec)
    : features_(expect_dimensions(spec, 2, "rows of numbers [B, features]").width()),
      flatten_(config.get<bool>("flatten")) {
  only_input(spec);
}

void NumericEmbedding::add_linear(const Config& config, const LayerSpec& spec, std::int64_t in) {
  if (!config.has("embedding_dim"))
    return;
  const auto out = config.get<std::int64_t>("embedding_dim");
  lite_ = config.get_or("lite", false);
  has_relu_ = config.get_or("activation", true);
  using Sizes = std::vector<std::int64_t>;
  weight_ = register_parameter(
      "weight", at::empty(lite_ ? Sizes{out, in} : Sizes{features_, in, out}, spec.dtype));
  bias_ =
      register_parameter("bias", at::empty(lite_ ? Sizes{out} : Sizes{features_, out}, spec.dtype));
  const at::NoGradGuard no_gradients;
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  weight_.uniform_(-bound, bound);
  bias_.uniform_(-bound, bound);
}

at::Tensor NumericEmbedding::forward(const Inputs& inputs, LayerContext&) {
  at::Tensor y = encoded(inputs[0]);
  if (lite_) {
    y = linear_in_precision(y, weight_, bias_);
  } else if (weight_.defined()) {
    // A product for each feature: [features, B, in] by [features, in, out].
    y = at::baddbmm(bias_.unsqueeze(1), y.transpose(0, 1), weight_).transpose(0, 1);
  }
  if (has_relu_)
    y = at::relu(y);
  return flatten_ ? y.flatten(1) : y;
}

PeriodicEmbedding::PeriodicEmbedding(const Config& config, const LayerSpec& spec)
    : NumericEmbedding(config, spec) {
  const auto count = config.get<std::int64_t>("n_frequencies");
  frequencies_ = register_parameter("frequencies", at::empty({features(), count}, spec.dtype));
  {
    const at::NoGradGuard no_gradients;
    frequencies_.normal_(0, config.get<double>("sigma"));
  }
  add_linear(config, spec, 2 * count);
}

NamesParameterRoles::Roles PeriodicEmbedding::parameter_roles() const {
  Roles roles = NumericEmbedding::parameter_roles();
  roles.emplace_back(frequencies_, ParameterRole::kTable);
  return roles;
}

at::Tensor PeriodicEmbedding::encoded(const at::Tensor& x) const {
  const at::Tensor v = x.unsqueeze(-1).mul(frequencies_.mul(2 * std::numbers::pi));
  return at::cat({at::cos(v), at::sin(v)}, -1);
}

void PiecewiseLinearEmbedding::check(const Config& config) {
  NumericEmbedding::check(config);
  if (config.has("range")) {
    if (!config.json().at("bins").is_number())
      config.fail("range",
                  "is for a number of bins, evenly spaced; the edges in \"bins\" have one");
    const auto range = config.get<Edges>("range");
    if (!(range[0] < range[1])) {
      config.fail("range", "expected the lower end and the upper one, got " +
                               config.json().at("range").dump());
    }
  }
  for (const Edges& edges : edges_in(config)) {
    const auto wrong = std::adjacent_find(edges.begin(), edges.end(),
                                          [](double left, double right) { return left >= right; });
    if (wrong != edges.end()) {
      config.fail("bins", "each edge must be more than the one before it, got " +
                              nlohmann::json(wrong[1]).dump() + " after " +
                              nlohmann::json(wrong[0]).dump());
    }
  }
}

PiecewiseLinearEmbedding::PiecewiseLinearEmbedding(const Config& config, const LayerSpec& spec)
    : NumericEmbedding(config, spec) {
  std::vector<Edges> edges = edges_in(config);
  if (config.json().at("bins").front().is_array()) {
    if (static_cast<std::int64_t>(edges.size()) != features()) {
      throw DataError("has bins for " + std::to_string(edges.size()) + " features, got " +
                      spec.inputs.front().text() +
                      "; give a list of edges for each feature, or one for all");
    }
  } else {
    edges.resize(static_cast<std::size_t>(features()), edges.front());
  }
  std::size_t most_edges = 0;
  for (const Edges& own : edges)
    most_edges = std::max(most_edges, own.size());
  const auto bins = static_cast<std::int64_t>(most_edges) - 1;

  // No bound: a number that each precision has, so that saved weights are finite in all of them.
  constexpr double kFar = 0x1.FEp127;  // the largest of bfloat16
  const auto buffer = [&](const std::string& name, double padding, const auto& of_bin) {
    std::vector<double> values;
    for (const Edges& own : edges) {
      for (std::size_t bin = 0; bin + 1 < own.size(); ++bin)
        values.push_back(of_bin(own, bin));
      values.insert(values.end(), most_edges - own.size(), padding);
    }
    return register_buffer(
        name, at::tensor(values, at::kDouble).reshape({features(), bins}).to(spec.dtype));
  };
  left_ = buffer("left", 0, [](const Edges& own, std::size_t bin) { return own[bin]; });
  widths_ = buffer("widths", 1,
                   [](const Edges& own, std::size_t bin) { return own[bin + 1] - own[bin]; });
  least_ = buffer("least", 0, [](const Edges&, std::size_t bin) { return bin == 0 ? -kFar : 0; });
  most_ = buffer("most", 0, [](const Edges& own, std::size_t bin) {
    return bin + 2 == own.size() ? kFar : 1;
  });
  add_linear(config, spec, bins);
}

at::Tensor PiecewiseLinearEmbedding::encoded(const at::Tensor& x) const {
  return at::clamp(x.unsqueeze(-1).sub(left_).div(widths_), least_, most_);
}

}  // namespace treadle::layers
