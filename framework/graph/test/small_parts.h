#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/problem.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/graph/part.h>
#include <treadle/graph/ready_parts.h>

/// Parts whose results can be told by hand.
namespace treadle::graph::testing {

inline Part times(double factor) {
  return [factor](const at::Tensor& x) { return x.mul(factor); };
}

inline Part plus(double summand) {
  return [summand](const at::Tensor& x) { return x.add(summand); };
}

/// stream + factor · reference
class PlusReference : public torch::nn::Module {
 public:
  explicit PlusReference(double factor = 1) : torch::nn::Module("PlusReference"), factor_(factor) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& reference) const {
    return x.add(reference, factor_);
  }

 private:
  double factor_;
};

inline Part plus_reference(double factor = 1) {
  return std::make_shared<PlusReference>(factor);
}

/// x · w, w being a parameter of one element.
class Scale : public torch::nn::Module {
 public:
  explicit Scale(double factor)
      : torch::nn::Module("Scale"),
        weight(register_parameter("weight", at::tensor({factor}, at::kDouble))) {}
  at::Tensor forward(const at::Tensor& x) const { return x.mul(weight); }
  at::Tensor weight;
};

/// x · w; "twin" is x · v, and "sign" whether x > 0. Counts how often each further output was
/// computed.
class Twins : public Layer, public NamesOutputs {
 public:
  Twins(double w, double v)
      : weight(register_parameter("weight", at::tensor({w}, at::kDouble))),
        other(register_parameter("other", at::tensor({v}, at::kDouble))) {}
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    if (context.is_requested("twin")) {
      ++twins;
      context.set_output("twin", inputs[0].mul(other));
    }
    if (context.is_requested("sign")) {
      ++signs;
      context.set_output("sign", inputs[0].gt(0));
    }
    return inputs[0].mul(weight);
  }
  std::vector<std::string> output_names() const override { return {"twin", "sign"}; }

  at::Tensor weight;
  at::Tensor other;
  int twins = 0;
  int signs = 0;
};

inline at::Tensor row(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble).unsqueeze(0);
}

inline at::Tensor column(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble).unsqueeze(1);
}

inline std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().reshape({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

inline LayerSpec spec_of(std::vector<std::vector<std::int64_t>> inputs) {
  LayerSpec spec;
  spec.dtype = at::kDouble;
  for (std::vector<std::int64_t>& sizes : inputs) {
    sizes.insert(sizes.begin(), TensorSpec::kVaries);
    spec.inputs.emplace_back(std::move(sizes), at::kDouble);
  }
  return spec;
}

/// What build() says is wrong, a line for each.
inline std::string mistakes(const FlowBuilder& flow) {
  try {
    flow.build();
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "";
}

inline std::string mistakes(const FlowBuilder& flow, const LayerSpec& spec) {
  try {
    flow.build(spec);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "";
}

}  // namespace treadle::graph::testing
