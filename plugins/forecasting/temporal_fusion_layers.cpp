#include "temporal_fusion_layers.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

#include "linear_weights.h"

namespace treadle::forecasting {
namespace {

constexpr double kLayerNormEps = 1e-5;

/// Registers parameters of a layer.
class Weights {
 public:
  Weights(torch::nn::Module& layer, c10::ScalarType dtype) : layer_(layer), dtype_(dtype) {}

  LinearMap linear(const std::string& name, std::int64_t out, std::int64_t in,
                   bool has_bias = true) const {
    LinearMap map;
    map.weight = layer_.register_parameter(name + "_weight", linear_weight(out, in, dtype_));
    if (has_bias)
      map.bias = layer_.register_parameter(name + "_bias", linear_bias(out, in, dtype_));
    return map;
  }
  /// `count` maps, one below the other.
  LinearMap linears(const std::string& name, std::int64_t count, std::int64_t out,
                    std::int64_t in) const {
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> biases;
    for (std::int64_t i = 0; i < count; ++i) {
      weights.push_back(linear_weight(out, in, dtype_));
      biases.push_back(linear_bias(out, in, dtype_));
    }
    return {layer_.register_parameter(name + "_weight", at::stack(weights)),
            layer_.register_parameter(name + "_bias", at::stack(biases))};
  }
  /// From `in` to `out` numbers. `context`: its width; 0: none.
  GatedResidual gated_residual(const std::string& prefix, std::int64_t in, std::int64_t hidden,
                               std::int64_t out, std::int64_t context) const {
    GatedResidual network;
    network.fc1 = linear(prefix + "fc1", hidden, in);
    if (context > 0)
      network.context = linear(prefix + "context", hidden, context, /*has_bias=*/false);
    network.fc2 = linear(prefix + "fc2", hidden, hidden);
    network.gate = linear(prefix + "gate", 2 * out, hidden);
    if (in != out)
      network.skip = linear(prefix + "skip", out, in);
    network.norm = norm(prefix + "norm", {out});
    return network;
  }
  LinearMap norm(const std::string& name, std::vector<std::int64_t> sizes) const {
    return {layer_.register_parameter(name + "_weight", at::ones(sizes, dtype_)),
            layer_.register_parameter(name + "_bias", at::zeros(sizes, dtype_))};
  }

 private:
  torch::nn::Module& layer_;
  c10::ScalarType dtype_;
};

at::Tensor normed(const LinearMap& norm, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, norm.weight, norm.bias, kLayerNormEps);
}

/// A context [B, width] beside the steps of [B, ..., width].
at::Tensor beside(at::Tensor context, std::int64_t dimensions) {
  while (context.dim() < dimensions)
    context = context.unsqueeze(1);
  return context;
}

at::Tensor dropped(const at::Tensor& x, double rate) {
  return rate > 0 ? at::dropout(x, rate, /*train=*/true) : x;
}

/// Throws DataError unless the input is a context of this many numbers, or of any for 0.
void expect_context(const TensorSpec& context, std::int64_t width = 0) {
  const bool fits = context.sizes.size() == 2 && (width == 0 || context.width() == width);
  if (!fits) {
    throw DataError("takes a context [B, " + (width == 0 ? "width" : std::to_string(width)) +
                    "] as its reference, got " + context.text());
  }
}

/// The width of the context behind the stream; 0: there is none.
std::int64_t context_width(const LayerSpec& spec) {
  if (spec.inputs.size() < 2)
    return 0;
  expect_context(spec.inputs[1]);
  return spec.inputs[1].width();
}

const TensorSpec& stream_of(const LayerSpec& spec, std::size_t dimensions,
                            std::string_view wanted) {
  const TensorSpec& stream = spec.inputs.at(0);
  if (stream.sizes.size() < dimensions || stream.width() == TensorSpec::kVaries)
    throw DataError("takes " + std::string(wanted) + ", got " + stream.text());
  return stream;
}

void expect_inputs(const LayerSpec& spec, std::size_t least, std::size_t most,
                   const std::string& wanted) {
  if (spec.inputs.size() < least || spec.inputs.size() > most)
    throw DataError("takes " + wanted + ", got " + std::to_string(spec.inputs.size()) + " inputs");
}

}  // namespace

at::Tensor LinearMap::operator()(const at::Tensor& x) const {
  return linear_in_precision(x, weight, bias);
}

at::Tensor GatedResidual::operator()(const at::Tensor& x, const at::Tensor& given,
                                     double dropout) const {
  at::Tensor hidden = fc1(x);
  if (context.weight.defined())
    hidden = hidden + beside(context(given), x.dim());
  hidden = dropped(fc2(at::elu(hidden)), dropout);
  return normed(norm, (skip.weight.defined() ? skip(x) : x) + at::glu(gate(hidden), -1));
}

// --- GatedResidualNetwork

GatedResidualNetwork::GatedResidualNetwork(const Config& config, const LayerSpec& spec)
    : dropout_(config.get<double>("dropout")) {
  expect_inputs(spec, 1, 2, "the stream and one context at most");
  const std::int64_t in = stream_of(spec, 2, "[B, ..., width]").width();
  network_ =
      Weights(*this, spec.dtype)
          .gated_residual("", in, config.get<std::int64_t>("hidden_size"),
                          config.get_or<std::int64_t>("out_features", in), context_width(spec));
}

at::Tensor GatedResidualNetwork::forward(const Inputs& inputs, LayerContext&) {
  return network_(inputs[0], inputs.size() == 2 ? inputs[1] : at::Tensor(),
                  is_training() ? dropout_ : 0);
}

// --- GatedAddNorm

GatedAddNorm::GatedAddNorm(const Config& config, const LayerSpec& spec)
    : dropout_(config.get<double>("dropout")) {
  expect_inputs(spec, 2, 2, "the stream and the value that it is added to, as its reference");
  const TensorSpec& stream = stream_of(spec, 2, "[B, ..., width]");
  const TensorSpec& reference = spec.inputs[1];
  bool fits = reference.sizes.size() == stream.sizes.size();
  for (std::size_t i = 0; fits && i + 1 < stream.sizes.size(); ++i)
    fits = reference.sizes[i] == stream.sizes[i];
  if (!fits)
    throw DataError("adds to a value of as many steps as " + stream.text() + ", got " +
                    reference.text());
  const Weights weights(*this, spec.dtype);
  gate_ = weights.linear("gate", 2 * reference.width(), stream.width());
  norm_ = weights.norm("norm", {reference.width()});
}

at::Tensor GatedAddNorm::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor x = dropped(inputs[0], is_training() ? dropout_ : 0);
  return normed(norm_, inputs[1] + at::glu(gate_(x), -1));
}

// --- VariableSelection

VariableSelection::VariableSelection(const Config& config, const LayerSpec& spec)
    : dropout_(config.get<double>("dropout")) {
  expect_inputs(spec, 1, 2, "the variables and one context at most");
  const TensorSpec& stream = stream_of(spec, 3, "variables [B, ..., variables, width]");
  const std::int64_t width = stream.width();
  const std::int64_t variables = stream.sizes[stream.sizes.size() - 2];
  if (variables == TensorSpec::kVaries)
    throw DataError("takes a fixed number of variables [B, ..., variables, width], got " +
                    stream.text());
  const Weights weights(*this, spec.dtype);
  of_weights_ =
      weights.gated_residual("weights_", variables * width, width, variables, context_width(spec));
  of_variables_.fc1 = weights.linears("variables_fc1", variables, width, width);
  of_variables_.fc2 = weights.linears("variables_fc2", variables, width, width);
  of_variables_.gate = weights.linears("variables_gate", variables, 2 * width, width);
  of_variables_.norm = weights.norm("variables_norm", {variables, width});
}

NamesParameterRoles::Roles VariableSelection::parameter_roles() const {
  const GatedResidual& its = of_variables_;
  Roles roles = all(ParameterRole::kTable,
                    {its.fc1.bias, its.fc2.bias, its.gate.bias, its.norm.weight, its.norm.bias});
  for (const LinearMap* map : {&its.fc1, &its.fc2, &its.gate})
    roles.emplace_back(map->weight, ParameterRole::kStack);
  return roles;
}

at::Tensor VariableSelection::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& x = inputs[0];
  const std::int64_t variables = x.size(-2);
  const std::int64_t width = x.size(-1);
  // The weights of the variables, [B, ..., variables].
  const at::Tensor flat = x.flatten(-2);
  const double dropout = is_training() ? dropout_ : 0;
  const at::Tensor weights =
      at::softmax(of_weights_(flat, inputs.size() == 2 ? inputs[1] : at::Tensor(), dropout), -1);
  if (context.is_requested("weights"))
    context.set_output("weights", weights);
  // Each variable by itself, as a batch of matrices [variables, B ..., width].
  const at::Tensor rows = x.reshape({-1, variables, width}).transpose(0, 1).contiguous();
  const auto each = [](const LinearMap& maps, const at::Tensor& values) {
    return at::baddbmm(maps.bias.unsqueeze(1), values, maps.weight.transpose(1, 2));
  };
  at::Tensor inner = each(of_variables_.fc2, at::elu(each(of_variables_.fc1, rows)));
  inner = rows + at::glu(each(of_variables_.gate, dropped(inner, dropout)), -1);
  inner = at::layer_norm(inner, {width}, {}, {}, kLayerNormEps) *
              of_variables_.norm.weight.unsqueeze(1) +
          of_variables_.norm.bias.unsqueeze(1);
  // Σ weight_j variable_j, of each row a product [1, variables] x [variables, width].
  const at::Tensor mean = at::bmm(weights.reshape({-1, 1, variables}), inner.transpose(0, 1));
  std::vector<std::int64_t> sizes(x.sizes().begin(), x.sizes().end() - 2);
  sizes.push_back(width);
  return mean.view(sizes);
}

// --- LstmEncoderDecoder

LstmEncoderDecoder::LstmEncoderDecoder(const Config& config, const LayerSpec& spec)
    : layers_(config.get<std::int64_t>("num_layers")), dropout_(config.get<double>("dropout")) {
  const bool fits = spec.inputs.size() == 2 || spec.inputs.size() == 4;
  if (!fits) {
    throw DataError(
        "takes the lookback and, as references, the horizon and none or two contexts, got " +
        std::to_string(spec.inputs.size()) + " inputs");
  }
  const TensorSpec& past = stream_of(spec, 3, "steps [B, steps, width]");
  const TensorSpec& future = spec.inputs[1];
  if (past.sizes.size() != 3 || future.sizes.size() != 3 || future.width() != past.width()) {
    throw DataError("takes a horizon of the width of its lookback, " + past.text() + ", got " +
                    future.text());
  }
  for (std::size_t i = 2; i < spec.inputs.size(); ++i)
    expect_context(spec.inputs[i], past.width());
  encoder_ = weights_of("encoder", past.width(), spec.dtype);
  decoder_ = weights_of("decoder", past.width(), spec.dtype);
}

std::vector<at::Tensor> LstmEncoderDecoder::weights_of(const std::string& name, std::int64_t width,
                                                       c10::ScalarType dtype) {
  std::vector<at::Tensor> weights;
  for (std::int64_t i = 0; i < layers_; ++i) {
    const std::string layer = "_l" + std::to_string(i);
    for (const char* const kind : {"_weight_ih", "_weight_hh"})
      weights.push_back(
          register_parameter(name + kind + layer, linear_weight(4 * width, width, dtype)));
    for (const char* const kind : {"_bias_ih", "_bias_hh"})
      weights.push_back(
          register_parameter(name + kind + layer, linear_bias(4 * width, width, dtype)));
  }
  return weights;
}

at::Tensor LstmEncoderDecoder::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& past = inputs[0];
  // Every layer begins with the same state: the context is one for the window.
  const auto begin = [&](std::size_t index) {
    return index < inputs.size() ? inputs[index].unsqueeze(0).expand({layers_, -1, -1}).contiguous()
                                 : at::zeros({layers_, past.size(0), past.size(2)}, past.options());
  };
  const double dropout = layers_ > 1 ? dropout_ : 0;
  at::Tensor hidden = begin(2);
  at::Tensor cell = begin(3);
  std::vector<at::Tensor> sequences;
  const auto run = [&](const at::Tensor& x, const std::vector<at::Tensor>& weights) {
    auto [sequence, last_hidden, last_cell] =
        at::lstm(x, {hidden, cell}, weights, /*has_biases=*/true, layers_, dropout, is_training(),
                 /*bidirectional=*/false, /*batch_first=*/true);
    sequences.push_back(std::move(sequence));
    hidden = std::move(last_hidden);
    cell = std::move(last_cell);
  };
  for (const auto& [x, weights] : {std::pair(past, encoder_), std::pair(inputs[1], decoder_)}) {
    if (!context.truncates_bptt()) {
      run(x, weights);
      continue;
    }
    // libtorch's loop over the steps cannot be cut.
    for (std::int64_t step = 0; step < x.size(1); ++step) {
      if (!sequences.empty()) {
        hidden = hidden.detach();
        cell = cell.detach();
      }
      run(x.narrow(1, step, 1), weights);
    }
  }
  return at::cat(sequences, 1);
}

// --- InterpretableAttention

InterpretableAttention::InterpretableAttention(const Config& config, const LayerSpec& spec)
    : heads_(config.get<std::int64_t>("num_heads")),
      queries_(config.get<std::int64_t>("queries")),
      dropout_(config.get<double>("dropout")) {
  expect_inputs(spec, 1, 1, "one input");
  const TensorSpec& steps = stream_of(spec, 3, "steps [B, steps, width]");
  const std::int64_t width = steps.width();
  if (steps.sizes.size() != 3)
    throw DataError("takes steps [B, steps, width], got " + steps.text());
  if (width % heads_ != 0) {
    config.fail("num_heads", "must divide the width " + std::to_string(width) +
                                 ": each head has its share of it");
  }
  if (steps.sizes[1] != TensorSpec::kVaries && steps.sizes[1] < queries_) {
    config.fail("queries",
                "must be at most the number of steps, " + std::to_string(steps.sizes[1]));
  }
  const Weights weights(*this, spec.dtype);
  query_weight_ = weights.linear("query", width, width, false).weight;
  key_weight_ = weights.linear("key", width, width, false).weight;
  value_weight_ = weights.linear("value", width / heads_, width, false).weight;
  out_weight_ = weights.linear("out", width, width / heads_, false).weight;
}

at::Tensor InterpretableAttention::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& x = inputs[0];
  const std::int64_t rows = x.size(0);
  const std::int64_t steps = x.size(1);
  const std::int64_t head_width = x.size(2) / heads_;
  const at::Tensor last = x.narrow(1, steps - queries_, queries_);
  const auto by_head = [&](const at::Tensor& values, const at::Tensor& weight) {
    return linear_in_precision(values, weight, {})
        .view({rows, values.size(1), heads_, head_width})
        .transpose(1, 2);
  };
  const at::Tensor query =
      by_head(last, query_weight_) * (1 / std::sqrt(static_cast<double>(head_width)));
  const at::Tensor key = by_head(x, key_weight_);
  const at::Tensor time = at::arange(steps, x.options().dtype(at::kLong));
  const at::Tensor is_later =
      time.unsqueeze(0).gt(time.narrow(0, steps - queries_, queries_).unsqueeze(1));
  const at::Tensor scores = at::matmul(query, key.transpose(2, 3))
                                .masked_fill(is_later, -std::numeric_limits<double>::infinity());
  // Heads share the values, so the mean of their results is that of the mean weights.
  const at::Tensor attention =
      dropped(at::softmax(scores, -1), is_training() ? dropout_ : 0).mean(1);
  if (context.is_requested("attention"))
    context.set_output("attention", attention);
  return linear_in_precision(at::bmm(attention, linear_in_precision(x, value_weight_, {})),
                             out_weight_, {});
}

}  // namespace treadle::forecasting
