#include "variants.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

#include "linear_map.h"
#include "simplex.h"

namespace treadle::softmax {
namespace {

std::int64_t product_of(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// `sizes` without the last, and these instead.
std::vector<std::int64_t> with_last(at::IntArrayRef sizes, const std::vector<std::int64_t>& last) {
  std::vector<std::int64_t> result(sizes.begin(), sizes.end() - 1);
  result.insert(result.end(), last.begin(), last.end());
  return result;
}

at::Tensor softmax_of_blocks(const at::Tensor& z, std::int64_t blocks, std::int64_t width) {
  return at::softmax(z.reshape(with_last(z.sizes(), {blocks, width})), -1).reshape(z.sizes());
}

/// Whether a tensor of the one sizes may be one of the others, where data decides some.
bool may_be(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& wanted) {
  return std::equal(sizes.begin(), sizes.end(), wanted.begin(), wanted.end(),
                    [](std::int64_t one, std::int64_t other) {
                      return one == other || one == TensorSpec::kVaries ||
                             other == TensorSpec::kVaries;
                    });
}

std::string text_of_size(std::int64_t size) {
  return size == TensorSpec::kVaries ? "varying" : std::to_string(size);
}

}  // namespace

TemperatureSoftmax::TemperatureSoftmax(const Config& config, const LayerSpec& spec)
    : dim_(dim_of_row(config, only_input(spec))), temperature_(config.get<double>("temperature")) {}

at::Tensor TemperatureSoftmax::forward(const Inputs& inputs, LayerContext&) {
  return at::softmax(inputs[0].div(temperature_), dim_);
}

GridSoftmax::GridSoftmax(const Config& config, const LayerSpec& spec)
    : rows_(config.get<std::int64_t>("rows")), cols_(config.get<std::int64_t>("cols")) {
  expect_width(only_input(spec), rows_ * cols_,
               std::to_string(rows_) + " rows of " + std::to_string(cols_) + " columns");
}

at::Tensor GridSoftmax::forward(const Inputs& inputs, LayerContext&) {
  return softmax_of_blocks(inputs[0], rows_, cols_);
}

TreeSoftmax::TreeSoftmax(const Config& config, const LayerSpec& spec)
    : levels_(config.get<std::vector<std::int64_t>>("levels")),
      only_last_level_(config.get<std::string>("normalize") == "last_level") {
  std::string terms;
  for (const std::int64_t level : levels_) {
    nodes_.push_back((nodes_.empty() ? 1 : nodes_.back()) * level);
    if (nodes_.back() > (std::int64_t{1} << 30))
      config.fail("levels", "has more than 1073741824 leaves");
    terms += (terms.empty() ? "" : " + ") + std::to_string(nodes_.back());
  }
  if (only_last_level_) {
    expect_width(only_input(spec), product_of(levels_), "a logit for each leaf");
  } else {
    expect_width(only_input(spec), std::accumulate(nodes_.begin(), nodes_.end(), std::int64_t{0}),
                 "a logit for each node of the levels: " + terms);
  }
}

at::Tensor TreeSoftmax::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& z = inputs[0];
  if (only_last_level_)
    return softmax_of_blocks(z, nodes_.back() / levels_.back(), levels_.back());
  at::Tensor path;  // log-probability of each node of a level, [..., nodes]
  std::int64_t start = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const at::Tensor level = z.narrow(-1, start, nodes_[i]);
    start += nodes_[i];
    const at::Tensor among_siblings = at::log_softmax(
        level.reshape(with_last(level.sizes(), {nodes_[i] / levels_[i], levels_[i]})), -1);
    path = (path.defined() ? path.unsqueeze(-1).add(among_siblings) : among_siblings)
               .reshape(level.sizes());
  }
  return path.exp();
}

GumbelSoftmax::GumbelSoftmax(const Config& config, const LayerSpec& spec)
    : dim_(dim_of_row(config, only_input(spec))),
      temperature_(config.get<double>("temperature")),
      is_hard_(config.get<bool>("hard")) {}

at::Tensor GumbelSoftmax::forward(const Inputs& inputs, LayerContext&) {
  at::Tensor z = widened(inputs[0]);
  if (is_training()) {
    // -log(u) has an exponential distribution. A 0 among its numbers would become infinite.
    at::Tensor exponential = at::empty(z.sizes(), z.options());
    exponential.exponential_().clamp_min_(std::numeric_limits<float>::min());
    z = z.sub(exponential.log());
  }
  const at::Tensor soft = at::softmax(z.div(temperature_), dim_).to(inputs[0].scalar_type());
  if (!is_hard_)
    return soft;
  const at::Tensor fixed = soft.detach();
  const at::Tensor largest = fixed.argmax(dim_, /*keepdim=*/true);
  const at::Tensor hard = at::zeros_like(fixed).scatter(dim_, largest, 1);
  return hard.add(soft.sub(fixed));  // soft - fixed is 0, with the slope of soft
}

MaskedSoftmax::MaskedSoftmax(const Config& config, const LayerSpec& spec)
    : dim_(dim_of_row(config, spec.inputs.front())) {
  const TensorSpec& stream = spec.inputs.front();
  const std::int64_t n = stream.sizes[static_cast<std::size_t>(dim_)];
  if (config.has("mask")) {
    const nlohmann::json& mask = config.json().at("mask");
    const auto length = static_cast<std::int64_t>(mask.size());
    if (length != n) {
      throw DataError("has a \"mask\" of " + std::to_string(length) + " for the " +
                      text_of_size(n) + " numbers along dimension " + std::to_string(dim_) +
                      " of " + stream.text());
    }
    at::Tensor fixed = at::empty({n}, at::kBool);
    for (std::int64_t i = 0; i < n; ++i)
      fixed[i].fill_(mask[static_cast<std::size_t>(i)].get<bool>());
    fixed_ = register_buffer("mask", fixed);
  }
  const TensorSpec of_rows({stream.sizes.front(), n}, at::kBool);
  const TensorSpec of_all(stream.sizes, at::kBool);
  for (std::size_t i = 1; i < spec.inputs.size(); ++i) {
    const TensorSpec& mask = spec.inputs[i];
    if (mask.dtype != at::kBool ||
        (!may_be(mask.sizes, of_rows.sizes) && !may_be(mask.sizes, of_all.sizes))) {
      throw DataError("takes masks " + of_rows.text() +
                      (of_all == of_rows ? "" : " or " + of_all.text()) + " for " + stream.text() +
                      ", got " + mask.text());
    }
  }
  if (!fixed_.defined() && spec.inputs.size() == 1) {
    throw DataError("has no mask; set \"mask\", or give one by \"using\", bool " + of_rows.text() +
                    ", true where a number counts");
  }
}

/// A mask [B, n] of the numbers along dim_, to stand beside the stream.
at::Tensor MaskedSoftmax::beside_stream(const at::Tensor& mask, const at::Tensor& stream) const {
  if (mask.sizes() == stream.sizes())
    return mask;
  if (mask.dim() != 2 || mask.size(0) != stream.size(0) || mask.size(1) != stream.size(dim_)) {
    throw DataError("takes a mask for each row of " + TensorSpec::of(stream).text() +
                    " along dimension " + std::to_string(dim_) + ", got " +
                    TensorSpec::of(mask).text());
  }
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(stream.dim()), 1);
  sizes.front() = mask.size(0);
  sizes[static_cast<std::size_t>(dim_)] = mask.size(1);
  return mask.view(sizes);
}

at::Tensor MaskedSoftmax::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& z = inputs[0];
  at::Tensor counts;
  if (fixed_.defined()) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(z.dim()), 1);
    sizes[static_cast<std::size_t>(dim_)] = fixed_.size(0);
    counts = fixed_.view(sizes);
  }
  for (const at::Tensor& mask : inputs.subspan(1)) {
    const at::Tensor more = beside_stream(mask, z);
    counts = counts.defined() ? counts.logical_and(more) : more;
  }
  const at::Tensor hidden = counts.logical_not();
  // A softmax over nothing would be no number, and its gradient neither.
  const at::Tensor nothing = hidden.all(dim_, /*keepdim=*/true);
  const at::Tensor scores =
      z.masked_fill(hidden, -std::numeric_limits<double>::infinity()).masked_fill(nothing, 0);
  return at::softmax(scores, dim_).masked_fill(nothing, 0);
}

Sparsemax::Sparsemax(const Config& config, const LayerSpec& spec)
    : dim_(dim_of_row(config, only_input(spec))) {}

at::Tensor Sparsemax::forward(const Inputs& inputs, LayerContext&) {
  return sparsemax(inputs[0], dim_);
}

Entmax::Entmax(const Config& config, const LayerSpec& spec)
    : dim_(dim_of_row(config, only_input(spec))), alpha_(config.get<double>("alpha")) {}

at::Tensor Entmax::forward(const Inputs& inputs, LayerContext&) {
  return entmax(inputs[0], alpha_, dim_);
}

MixtureSoftmax::MixtureSoftmax(const Config& config, const LayerSpec& spec)
    : components_(config.get<std::int64_t>("num_components")) {
  const TensorSpec& stream = spec.inputs.front();
  const auto out_features = config.find<std::int64_t>("out_features");
  if (stream.sizes.size() < 2 || stream.sizes.back() == TensorSpec::kVaries)
    throw DataError("takes rows [B, ..., width] of a known width, got " + stream.text());
  if (out_features) {
    const std::int64_t width = only_input(spec).width();
    const auto add_linear = [&](const std::string& name, std::int64_t in, std::int64_t out,
                                at::Tensor& weight, at::Tensor& bias) {
      const LinearMap made = initial_linear(in, out, spec.dtype);
      weight = register_parameter(name + "_weight", made.weight);
      bias = register_parameter(name + "_bias", made.bias);
    };
    add_linear("gate", width, components_, gate_weight_, gate_bias_);
    add_linear("latent", width, components_ * width, latent_weight_, latent_bias_);
    add_linear("out", width, *out_features, out_weight_, out_bias_);
    return;
  }
  if (stream.width() % components_ != 0) {
    throw DataError("takes " + std::to_string(components_) +
                    " blocks of logits beside each other, which do not divide the width of " +
                    stream.text() + "; with \"out_features\" it computes the logits itself");
  }
  if (spec.inputs.size() == 1) {
    mixing_ = register_parameter("mixing", at::zeros({components_}, spec.dtype));
    return;
  }
  std::vector<std::int64_t> wanted = stream.sizes;
  wanted.back() = components_;
  if (spec.inputs.size() > 2 || !may_be(spec.inputs[1].sizes, wanted)) {
    throw DataError("takes one reference " + TensorSpec(wanted, spec.dtype).text() +
                    ", the logits of its components, got " + spec.inputs[1].text() +
                    (spec.inputs.size() > 2 ? " and more" : ""));
  }
}

at::Tensor MixtureSoftmax::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& x = inputs[0];
  at::Tensor logits;  // [..., K, n]
  at::Tensor gate;    // [..., K]
  if (out_weight_.defined()) {
    const at::Tensor latent = linear_in_precision(x, latent_weight_, latent_bias_).tanh();
    logits =
        linear_in_precision(latent.reshape(with_last(latent.sizes(), {components_, x.size(-1)})),
                            out_weight_, out_bias_);
    gate = linear_in_precision(x, gate_weight_, gate_bias_);
  } else {
    logits = x.reshape(with_last(x.sizes(), {components_, x.size(-1) / components_}));
    gate = mixing_.defined() ? mixing_ : inputs[1];
  }
  return at::softmax(logits, -1).mul(at::softmax(gate, -1).unsqueeze(-1)).sum(-2);
}

}  // namespace treadle::softmax
