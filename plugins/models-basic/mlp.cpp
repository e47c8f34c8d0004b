#include "mlp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/recomputed.h>

namespace treadle::models {
namespace {

struct NamedActivation {
  std::string_view name;
  Activation function;
};

// Where the derivative can be had from the result, the layer's own output is overwritten: one
// tensor less to allocate and to keep.
constexpr std::array kActivations{
    NamedActivation{"relu", [](at::Tensor x) { return at::relu_(x); }},
    NamedActivation{"gelu", [](at::Tensor x) { return at::gelu(x); }},
    NamedActivation{"tanh", [](at::Tensor x) { return at::tanh_(x); }},
    NamedActivation{"silu", [](at::Tensor x) { return at::silu(x); }},
    NamedActivation{"sigmoid", [](at::Tensor x) { return at::sigmoid_(x); }},
    NamedActivation{"leaky_relu", [](at::Tensor x) { return at::leaky_relu_(x); }},
    NamedActivation{"elu", [](at::Tensor x) { return at::elu_(x); }},
};

struct NamedNorm {
  std::string_view name;
  Norm norm;
};

constexpr std::array kNorms{NamedNorm{"none", Norm::kNone}, NamedNorm{"batch", Norm::kBatch},
                            NamedNorm{"layer", Norm::kLayer}};

// The schema has already refused other names; this catches a schema and a table that disagree.
template <typename Table>
const auto& find_by_name(const Table& table, std::string_view name) {
  for (const auto& row : table) {
    if (row.name == name)
      return row;
  }
  throw ContractViolation("mlp knows no \"" + std::string(name) + "\"");
}

constexpr double kNormEps = 1e-5;  // PyTorch's defaults
constexpr double kNormMomentum = 0.1;

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape)
    count *= size;
  return count;
}

bool has_varying_size(const std::vector<std::int64_t>& shape) {
  return std::find(shape.begin(), shape.end(), kVaries) != shape.end();
}

/// All but those that describe others.
std::vector<std::size_t> taken_ports(const ModelSpec& spec) {
  std::vector<std::size_t> ports;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i].is_auxiliary())
      ports.push_back(i);
  }
  return ports;
}

void refuse_columns(const std::vector<std::string>& names, std::string_view one,
                    std::string_view several, std::string_view transform) {
  if (names.empty())
    return;
  throw DataError((names.size() == 1 ? "column " : "columns ") + quoted_list(names) + " " +
                  std::string(names.size() == 1 ? one : several) + "; add {\"use\": \"" +
                  std::string(transform) + "\"} to transforms");
}

}  // namespace

struct MlpModel::Layer : torch::nn::Module {
  Layer(std::int64_t in, std::int64_t out, c10::ScalarType dtype)
      : weight(register_parameter("weight", at::empty({out, in}, dtype))),
        bias(register_parameter("bias", at::empty({out}, dtype))) {
    // Kaiming's uniform rule with a = sqrt(5), in the order of operations of torch.nn.init: the
    // same generator gives the bits of torch.nn.Linear.
    const at::NoGradGuard no_gradients;
    const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
    const double spread = gain / std::sqrt(static_cast<double>(in));
    const double weight_bound = std::sqrt(3.0) * spread;
    const double bias_bound = 1 / std::sqrt(static_cast<double>(in));
    weight.uniform_(-weight_bound, weight_bound);
    bias.uniform_(-bias_bound, bias_bound);
  }

  at::Tensor weight;
  at::Tensor bias;
};

struct MlpModel::BatchNorm : torch::nn::Module {
  BatchNorm(std::int64_t width, c10::ScalarType dtype)
      : weight(register_parameter("weight", at::ones({width}, dtype))),
        bias(register_parameter("bias", at::zeros({width}, dtype))),
        running_mean(register_buffer("running_mean", at::zeros({width}, dtype))),
        running_var(register_buffer("running_var", at::ones({width}, dtype))) {}

  at::Tensor forward(const at::Tensor& values) {
    if (is_training() && values.size(0) < 2) {
      throw TrainingError(
          "batch norm cannot train on a batch of one row; choose a batch_size that "
          "leaves no single row over, set \"drop_last\" or use \"norm\": \"layer\"");
    }
    return at::batch_norm(values, weight, bias, running_mean, running_var, is_training(),
                          kNormMomentum, kNormEps, /*cudnn_enabled=*/true);
  }

  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
};

struct MlpModel::LayerNorm : torch::nn::Module {
  LayerNorm(std::int64_t width, c10::ScalarType dtype)
      : weight(register_parameter("weight", at::ones({width}, dtype))),
        bias(register_parameter("bias", at::zeros({width}, dtype))) {}

  at::Tensor forward(const at::Tensor& values) const {
    return at::layer_norm(values, weight.sizes(), weight, bias, kNormEps);
  }

  at::Tensor weight;
  at::Tensor bias;
};

MlpModel::MlpModel(const MlpShape& shape, const ModelSpec& spec)
    : shape_(shape), ports_(taken_ports(spec)) {
  for (const std::size_t port : ports_)
    features_ += element_count(spec.inputs[port].shape);
  std::int64_t total_width = 0;
  for (const OutputSpec& output : spec.outputs) {
    output_sizes_.push_back(element_count(output.shape));
    total_width += output_sizes_.back();
    std::vector<std::int64_t>& sizes = output_shapes_.emplace_back();
    if (output.shape.size() > 1) {
      sizes = output.shape;
      sizes.insert(sizes.begin(), -1);
    }
  }
  const auto layers = register_module("layers", std::make_shared<torch::nn::Module>("Layers"));
  std::shared_ptr<torch::nn::Module> norms;
  if (shape_.norm != Norm::kNone && !shape_.hidden.empty())
    norms = register_module("norms", std::make_shared<torch::nn::Module>("Norms"));

  std::int64_t width = features_;
  for (std::size_t i = 0; i < shape_.hidden.size(); ++i) {
    const std::string name = std::to_string(i);
    const std::int64_t next = shape_.hidden[i];
    layers_.push_back(
        layers->register_module(name, std::make_shared<Layer>(width, next, spec.dtype)));
    if (shape_.norm == Norm::kBatch)
      batch_norms_.push_back(
          norms->register_module(name, std::make_shared<BatchNorm>(next, spec.dtype)));
    if (shape_.norm == Norm::kLayer)
      layer_norms_.push_back(
          norms->register_module(name, std::make_shared<LayerNorm>(next, spec.dtype)));
    width = next;
  }
  layers_.push_back(
      layers->register_module(std::to_string(shape_.hidden.size()),
                              std::make_shared<Layer>(width, total_width, spec.dtype)));
}

MlpModel::~MlpModel() = default;

at::Tensor MlpModel::hidden_layer(std::size_t index, const at::Tensor& values) const {
  const Layer& layer = *layers_[index];
  at::Tensor result = at::linear(values, layer.weight, layer.bias);
  if (!batch_norms_.empty())
    result = batch_norms_[index]->forward(result);
  else if (!layer_norms_.empty())
    result = layer_norms_[index]->forward(result);
  result = shape_.activation(std::move(result));
  if (shape_.dropout > 0 && is_training())
    result = at::dropout(result, shape_.dropout, /*train=*/true);
  return result;
}

at::Tensor MlpModel::hidden_layers(std::size_t begin, std::size_t end, at::Tensor values) const {
  for (std::size_t i = begin; i < end; ++i)
    values = hidden_layer(i, values);
  return values;
}

at::Tensor MlpModel::features_of(const Inputs& inputs) const {
  if (ports_.size() > 1) {
    std::vector<at::Tensor> tables;
    for (const std::size_t port : ports_)
      tables.push_back(inputs[port]);
    return at::cat(tables, 1);
  }
  const at::Tensor& values = inputs[ports_[0]];
  return values.dim() == 2 ? values : values.reshape({values.size(0), features_});
}

void MlpModel::forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) {
  at::Tensor values = features_of(inputs);
  const std::size_t count = shape_.hidden.size();
  if (shape_.recompute_layers == 0) {
    values = hidden_layers(0, count, std::move(values));
  } else {
    for (std::size_t begin = 0; begin < count; begin += shape_.recompute_layers) {
      const std::size_t end = std::min(count, begin + shape_.recompute_layers);
      values = recomputed(*this,
                          [this, begin, end](const std::vector<at::Tensor>& given) {
                            return std::vector<at::Tensor>{hidden_layers(begin, end, given[0])};
                          },
                          {values})[0];
    }
  }
  const Layer& last = *layers_.back();
  values = at::linear(values, last.weight, last.bias);
  if (outputs.size() == 1) {
    outputs[0] = std::move(values);
  } else {
    outputs = at::split_with_sizes(values, output_sizes_, 1);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!output_shapes_[i].empty())
      outputs[i] = outputs[i].reshape(output_shapes_[i]);
  }
}

void expect_numbers(const std::string& model, const ModelSpec& spec) {
  const std::string start = "model \"" + model + "\" ";
  const std::vector<std::size_t> taken = taken_ports(spec);
  std::int64_t elements = 0;
  std::vector<std::string> categories;
  std::vector<std::string> incomplete;
  for (const std::size_t index : taken) {
    const PortSpec& port = spec.inputs[index];
    if (port.role == Role::kTokens) {
      throw DataError("port " + quote_text(port.name) + " has tokens, which " + start +
                      "would take for numbers; use the model \"flow\", which begins with {\"use\": "
                      "\"embedding\"}");
    }
    if (has_varying_size(port.shape)) {
      throw DataError(start + "takes inputs of a fixed size, but the sizes of " +
                      quote_text(port.name) + " vary from row to row; use the model \"flow\"");
    }
    if (taken.size() > 1 && port.shape.size() != 1) {
      std::vector<std::string> names;
      for (const std::size_t i : taken)
        names.push_back(spec.inputs[i].name);
      throw DataError(start + "takes one input, or several tables, but the data has " +
                      quoted_list(names) + ", and " + quote_text(port.name) +
                      " is no table; use the model \"flow\"");
    }
    elements += element_count(port.shape);
    for (const Column& column : port.columns) {
      if (port.role == Role::kCategories || !column.categories.empty())
        categories.push_back(column.name);
      if (column.may_be_missing)
        incomplete.push_back(column.name);
    }
    if (port.role == Role::kCategories && port.columns.empty())
      categories.push_back(port.name);
  }
  refuse_columns(categories, "is a category", "are categories", "one_hot");
  if (elements == 0)
    throw DataError(start + "needs at least one input column, but the data has none");
  refuse_columns(incomplete, "has missing values", "have missing values", "impute");
  for (const OutputSpec& output : spec.outputs) {
    if (has_varying_size(output.shape)) {
      throw DataError(start +
                      "gives outputs of a fixed size, but the loss asks for one value per "
                      "position of sequences whose lengths vary; use the model \"flow\"");
    }
  }
}

Mlp::Mlp(const Config& config)
    : shape_{
          .hidden = config.get<std::vector<std::int64_t>>("hidden"),
          .activation = find_by_name(kActivations, config.get<std::string>("activation")).function,
          .dropout = config.get<double>("dropout"),
          .norm = find_by_name(kNorms, config.get<std::string>("norm")).norm,
          .recompute_layers = config.get<std::size_t>("recompute_layers")} {}

std::shared_ptr<Model> Mlp::do_create(const ModelSpec& spec) const {
  expect_numbers("mlp", spec);
  return std::make_shared<MlpModel>(shape_, spec);
}

Linear::Linear(const Config&) {}

std::shared_ptr<Model> Linear::do_create(const ModelSpec& spec) const {
  expect_numbers("linear", spec);
  return std::make_shared<MlpModel>(MlpShape{}, spec);
}

}  // namespace treadle::models
