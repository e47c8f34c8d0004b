#include "mlp_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/acts_on_positions.h>
#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/linear.h>
#include <treadle/core/model/running_statistics.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>

namespace treadle::models {
namespace {

using Values = std::span<const PlanValue>;

constexpr double kNormEps = 1e-5;  // PyTorch's defaults
constexpr double kNormMomentum = 0.1;
constexpr double kLeakySlope = 0.01;

std::int64_t width_of(const LayerSpec& spec) {
  return spec.inputs.front().width();
}

class Dense final : public Layer, public Lowerable, public ActsOnPositions {
 public:
  Dense(std::int64_t in, std::int64_t units, c10::ScalarType dtype)
      : Layer("dense"),
        weight_(register_parameter("weight", at::empty({units, in}, dtype))),
        bias_(register_parameter("bias", at::empty({units}, dtype))) {
    // Kaiming's uniform rule with a = sqrt(5), in the order of operations of torch.nn.init: the
    // same generator gives the bits of torch.nn.Linear.
    const at::NoGradGuard no_gradients;
    const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
    const double spread = gain / std::sqrt(static_cast<double>(in));
    const double weight_bound = std::sqrt(3.0) * spread;
    const double bias_bound = 1 / std::sqrt(static_cast<double>(in));
    weight_.uniform_(-weight_bound, weight_bound);
    bias_.uniform_(-bias_bound, bias_bound);
  }

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return linear_in_precision(inputs[0], weight_, bias_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder, Values inputs) const override {
    return builder.apply(plan_linear(weight_, bias_), inputs[0]);
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

class BatchNorm final : public Layer, public Lowerable, public GathersStatistics {
 public:
  BatchNorm(std::int64_t width, c10::ScalarType dtype)
      : Layer("batch_norm"),
        weight_(register_parameter("weight", at::ones({width}, dtype))),
        bias_(register_parameter("bias", at::zeros({width}, dtype))),
        statistics_{register_buffer("running_mean", at::zeros({width}, dtype)),
                    register_buffer("running_var", at::ones({width}, dtype)), kNormMomentum} {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    if (is_training() && inputs[0].size(0) < 2) {
      throw TrainingError(
          "batch norm cannot train on a batch of one row; choose a batch_size that "
          "leaves no single row over, set \"drop_last\" or use \"norm\": \"layer\"");
    }
    return at::batch_norm(inputs[0], weight_, bias_, statistics_.mean(), statistics_.var(),
                          is_training(), is_training() ? statistics_.next_momentum() : 0, kNormEps,
                          /*cudnn_enabled=*/true);
  }
  void begin_gathering() override { statistics_.begin_gathering(); }
  void end_gathering() override { statistics_.end_gathering(); }
  std::optional<PlanValue> lower(PlanBuilder& builder, Values inputs) const override {
    if (is_training() && builder.spec(inputs[0]).sizes[0] < 2)
      return std::nullopt;  // the call says what is wrong
    return builder.apply(plan_batch_norm({weight_, bias_, statistics_.mean(), statistics_.var(),
                                          is_training(), kNormMomentum, kNormEps}),
                         inputs[0]);
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  RunningStatistics statistics_;
};

class LayerNorm final : public Layer, public Lowerable {
 public:
  LayerNorm(std::int64_t width, c10::ScalarType dtype)
      : Layer("layer_norm"),
        weight_(register_parameter("weight", at::ones({width}, dtype))),
        bias_(register_parameter("bias", at::zeros({width}, dtype))),
        width_(width) {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::layer_norm(inputs[0], {width_}, weight_, bias_, kNormEps);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder, Values inputs) const override {
    return builder.apply(plan_layer_norm(weight_, bias_, width_, kNormEps), inputs[0]);
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  std::int64_t width_;
};

class Dropout final : public Layer, public Lowerable, public DrawsInTraining {
 public:
  explicit Dropout(double rate) : Layer("dropout"), rate_(rate) {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return is_training() ? at::dropout(inputs[0], rate_, /*train=*/true) : inputs[0];
  }
  std::optional<PlanValue> lower(PlanBuilder& builder, Values inputs) const override {
    return is_training() ? builder.apply(plan_dropout(rate_), inputs[0]) : inputs[0];
  }
  bool draws_in_training() const override { return rate_ > 0; }

 private:
  double rate_;
};

struct NamedActivation {
  std::string_view name;
  at::Tensor (*function)(const at::Tensor& x);
  PlanValue (*lower)(PlanBuilder& builder, PlanValue x);
};

template <std::shared_ptr<const PlanOp> (*kPlan)()>
PlanValue lowered(PlanBuilder& builder, PlanValue x) {
  return builder.apply(kPlan(), x);
}

constexpr std::array kActivations{
    NamedActivation{"relu", [](const at::Tensor& x) { return at::relu(x); },
                    [](PlanBuilder& builder, PlanValue x) {
                      return builder.elementwise(ElementwiseOp::kRelu, x);
                    }},
    NamedActivation{
        "gelu", [](const at::Tensor& x) { return at::gelu(x); },
        [](PlanBuilder& builder, PlanValue x) { return builder.apply(plan_gelu(), x); }},
    NamedActivation{"tanh", [](const at::Tensor& x) { return at::tanh(x); }, lowered<plan_tanh>},
    NamedActivation{"silu", [](const at::Tensor& x) { return at::silu(x); }, lowered<plan_silu>},
    NamedActivation{"sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); },
                    lowered<plan_sigmoid>},
    NamedActivation{"leaky_relu",
                    [](const at::Tensor& x) { return at::leaky_relu(x, kLeakySlope); },
                    [](PlanBuilder& builder, PlanValue x) {
                      return builder.elementwise(ElementwiseOp::kLeakyRelu, x, kLeakySlope);
                    }},
    NamedActivation{"elu", [](const at::Tensor& x) { return at::elu(x); }, lowered<plan_elu>},
};

class Activation final : public Layer, public Lowerable {
 public:
  explicit Activation(const NamedActivation& activation)
      : Layer(std::string(activation.name)), activation_(activation) {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return activation_.function(inputs[0]);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder, Values inputs) const override {
    return activation_.lower(builder, inputs[0]);
  }

 private:
  const NamedActivation& activation_;
};

class Columns final : public Layer {
 public:
  Columns(std::int64_t begin, std::int64_t width) : Layer("narrow"), begin_(begin), width_(width) {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].narrow(1, begin_, width_);
  }

 private:
  std::int64_t begin_;
  std::int64_t width_;
};

}  // namespace

graph::Part dense(std::int64_t units) {
  return graph::Part("dense",
                     [units](const LayerSpec& spec) {
                       return std::make_shared<Dense>(width_of(spec), units, spec.dtype);
                     },
                     {{"out_features", units}});
}

graph::Part batch_norm() {
  return graph::Part(
      "batch_norm",
      [](const LayerSpec& spec) { return std::make_shared<BatchNorm>(width_of(spec), spec.dtype); },
      nlohmann::json::object());
}

graph::Part layer_norm() {
  return graph::Part(
      "layer_norm",
      [](const LayerSpec& spec) { return std::make_shared<LayerNorm>(width_of(spec), spec.dtype); },
      nlohmann::json::object());
}

graph::Part dropout(double rate) {
  return graph::Part("dropout",
                     [rate](const LayerSpec&) { return std::make_shared<Dropout>(rate); },
                     {{"p", rate}});
}

graph::Part activation(std::string_view name) {
  const auto found = std::find_if(kActivations.begin(), kActivations.end(),
                                  [&](const NamedActivation& one) { return one.name == name; });
  // The schema has already refused other names; this catches a schema and a table that disagree.
  if (found == kActivations.end())
    throw ContractViolation("mlp has no activation \"" + std::string(name) + "\"");
  return graph::Part(
      std::string(name), [found](const LayerSpec&) { return std::make_shared<Activation>(*found); },
      nlohmann::json::object());
}

graph::Part columns(std::int64_t begin, std::int64_t width) {
  return graph::Part(
      "narrow",
      [begin, width](const LayerSpec&) { return std::make_shared<Columns>(begin, width); },
      {{"start", begin}, {"length", width}});
}

}  // namespace treadle::models
