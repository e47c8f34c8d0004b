#include "activations.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/celu.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/glu_backward.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardsigmoid_backward.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardswish_backward.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/hardtanh_backward.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_sigmoid_backward.h>
#include <ATen/ops/log_sigmoid_forward.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/mish_backward.h>
#include <ATen/ops/prelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/softplus_backward.h>
#include <ATen/ops/tanh.h>

#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/op.h>
#include <treadle/plan/ops.h>
#include <treadle/tensor/torch_versions.h>

#include "stream.h"

namespace treadle::layers {
namespace {

using Rule = std::function<at::Tensor(const at::Tensor&)>;

/// A function with the numbers that the document gives it, and the same for a plan.
struct Chosen {
  Rule rule;
  PlanFunction planned;
};
using Choose = Chosen (*)(const Config& config);

/// rule(x), with what the document says of the rule read once.
template <Choose kChoose>
class Activation final : public Layer, public Lowerable {
 public:
  Activation(const Config& config, const LayerSpec& spec) : chosen_(kChoose(config)) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return chosen_.rule(inputs[0]);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_function(chosen_.planned), inputs[0]);
  }

 private:
  Chosen chosen_;
};

/// A rule without parameters needs no std::function: it is called as often as anything.
template <at::Tensor (*kRule)(const at::Tensor&), std::shared_ptr<const PlanOp> (*kPlanned)()>
class Plain final : public Layer, public Lowerable {
 public:
  Plain(const Config&, const LayerSpec& spec) { only_input(spec); }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return kRule(inputs[0]); }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(kPlanned(), inputs[0]);
  }
};

class Relu final : public Layer, public Lowerable {
 public:
  Relu(const Config&, const LayerSpec& spec) { only_input(spec); }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return at::relu(inputs[0]); }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.elementwise(ElementwiseOp::kRelu, inputs[0]);
  }
};

/// max(0, 1.1 · x)
class ScaledRelu final : public Layer, public Lowerable {
 public:
  ScaledRelu(const Config&, const LayerSpec& spec) { only_input(spec); }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::relu(inputs[0].mul(kScale));
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.elementwise(ElementwiseOp::kRelu,
                               builder.elementwise(ElementwiseOp::kScale, inputs[0], kScale));
  }

 private:
  static constexpr double kScale = 1.1;
};

class LeakyRelu final : public Layer, public Lowerable {
 public:
  LeakyRelu(const Config& config, const LayerSpec& spec)
      : slope_(config.get<double>("negative_slope")) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::leaky_relu(inputs[0], slope_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.elementwise(ElementwiseOp::kLeakyRelu, inputs[0], slope_);
  }

 private:
  double slope_;
};

class Gelu final : public Layer, public Lowerable {
 public:
  Gelu(const Config& config, const LayerSpec& spec)
      : by_tanh_(config.get<std::string>("approximate") == "tanh") {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::gelu(inputs[0], by_tanh_ ? "tanh" : "none");
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_gelu(by_tanh_), inputs[0]);
  }

 private:
  bool by_tanh_;
};

class Softmax final : public Layer, public Lowerable {
 public:
  Softmax(const Config& config, const LayerSpec& spec) : dim_(config.get<std::int64_t>("dim")) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::softmax(inputs[0], dim_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_softmax(dim_), inputs[0]);
  }

 private:
  std::int64_t dim_;
};

class PReluOp final : public PlanOp {
 public:
  explicit PReluOp(at::Tensor weight) : weight_(std::move(weight)) {}

  std::string_view name() const override { return "prelu"; }
  bool allocates() const override { return true; }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    output = at::prelu(inputs[0], weight_);
  }

  void backward(const PlanGradients& gradients) const override {
    auto [of_input, of_weight] =
        torch_versions::prelu_gradients(gradients.of_output, gradients.inputs[0], weight_);
    if (gradients.wanted[0])
      gradients.of_inputs[0] = std::move(of_input);
    if (gradients.of_parameters[0].defined())
      gradients.of_parameters[0].add_(of_weight);
  }

  std::vector<at::Tensor> parameters() const override { return {weight_}; }

 private:
  at::Tensor weight_;
};

/// max(0, x) + a · min(0, x), a learned: one number, or one for each channel (dimension 1).
class PRelu final : public Layer, public Lowerable {
 public:
  PRelu(const Config& config, const LayerSpec& spec) {
    const TensorSpec& input = only_input(spec);
    const bool per_channel = config.get<bool>("per_channel");
    if (per_channel)
      expect_at_least(spec, 2, "channels in dimension 1");
    weight_ = register_parameter(
        "weight", at::full({per_channel ? input.sizes[1] : 1}, config.get<double>("init"),
                           at::TensorOptions(spec.dtype)));
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::prelu(inputs[0], weight_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(std::make_shared<PReluOp>(weight_), inputs[0]);
  }

 private:
  at::Tensor weight_;
};

/// Keeps exp(-|x|), which libtorch's kernel for the gradient reads.
class LogSigmoidOp final : public PlanOp {
 public:
  std::string_view name() const override { return "log_sigmoid"; }
  bool allocates() const override { return true; }
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(1);
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    std::tie(output, kept[0]) = at::log_sigmoid_forward(inputs[0]);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0]) {
      gradients.of_inputs[0] =
          at::log_sigmoid_backward(gradients.of_output, gradients.inputs[0], gradients.kept[0]);
    }
  }
};

at::Tensor relu6(const at::Tensor& x) {
  return at::clamp(x, 0, 6);
}
at::Tensor log_sigmoid(const at::Tensor& x) {
  return at::log_sigmoid(x);
}
at::Tensor sigmoid(const at::Tensor& x) {
  return at::sigmoid(x);
}
at::Tensor tanh(const at::Tensor& x) {
  return at::tanh(x);
}
at::Tensor silu(const at::Tensor& x) {
  return at::silu(x);
}
at::Tensor selu(const at::Tensor& x) {
  return at::selu(x);
}
at::Tensor mish(const at::Tensor& x) {
  return at::mish(x);
}
at::Tensor softsign(const at::Tensor& x) {
  return x.div(x.abs().add(1));
}
at::Tensor hardsigmoid(const at::Tensor& x) {
  return at::hardsigmoid(x);
}
at::Tensor hardswish(const at::Tensor& x) {
  return at::hardswish(x);
}

// The same for plans. Each calls the kernels that autograd runs, with its arguments; derivatives as
// in libtorch's derivatives.yaml.

std::shared_ptr<const PlanOp> plan_relu6() {
  return plan_function(
      {"relu6", [](at::Tensor& out, const Inputs& in) { at::clamp_out(out, in[0], 0, 6); },
       [](const PlanGradients& of) {
         // Not hardtanh's gradient: 0 and 6 themselves pass it on.
         const at::Tensor inside = of.inputs[0].ge(0).logical_and_(of.inputs[0].le(6));
         of.of_inputs[0].copy_(of.of_output).masked_fill_(inside.logical_not_(), 0);
       }});
}

std::shared_ptr<const PlanOp> plan_log_sigmoid() {
  return std::make_shared<LogSigmoidOp>();
}

std::shared_ptr<const PlanOp> plan_mish() {
  return plan_function({"mish", [](at::Tensor& out, const Inputs& in) { at::mish_out(out, in[0]); },
                        [](const PlanGradients& of) {
                          of.of_inputs[0].copy_(at::mish_backward(of.of_output, of.inputs[0]));
                        }});
}

std::shared_ptr<const PlanOp> plan_softsign() {
  return plan_function(
      {"softsign",
       [](at::Tensor& out, const Inputs& in) { at::div_out(out, in[0], in[0].abs().add_(1)); },
       [](const PlanGradients& of) {
         const at::Tensor& x = of.inputs[0];
         const at::Tensor below = x.abs().add_(1);
         at::div_out(of.of_inputs[0], of.of_output, below);
         of.of_inputs[0].add_(of.of_output.neg().mul_(of.output.div(below)).mul_(x.sgn()));
       },
       {.inputs = true, .output = true}});
}

std::shared_ptr<const PlanOp> plan_hardsigmoid() {
  return plan_function({"hardsigmoid",
                        [](at::Tensor& out, const Inputs& in) { at::hardsigmoid_out(out, in[0]); },
                        [](const PlanGradients& of) {
                          at::hardsigmoid_backward_out(of.of_inputs[0], of.of_output, of.inputs[0]);
                        }});
}

std::shared_ptr<const PlanOp> plan_hardswish() {
  return plan_function({"hardswish",
                        [](at::Tensor& out, const Inputs& in) { at::hardswish_out(out, in[0]); },
                        [](const PlanGradients& of) {
                          of.of_inputs[0].copy_(at::hardswish_backward(of.of_output, of.inputs[0]));
                        }});
}

/// scale · x where x > 0, else scale · alpha · (exp(x · input_scale) − 1).
PlanFunction planned_elu(std::string_view name, double alpha, double scale, double input_scale,
                         double input_scale_of_gradient) {
  return {name,
          [=](at::Tensor& out, const Inputs& in) {
            at::elu_out(out, in[0], alpha, scale, input_scale);
          },
          [=](const PlanGradients& of) {
            at::elu_backward_out(of.of_inputs[0], of.of_output, alpha, scale,
                                 input_scale_of_gradient, /*is_result=*/false, of.inputs[0]);
          }};
}

std::shared_ptr<const PlanOp> plan_selu() {
  // As in libtorch's native/Activation.cpp.
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  return plan_function(planned_elu("selu", kAlpha, kScale, 1, 1));
}

Chosen elu(const Config& config) {
  const auto alpha = config.get<double>("alpha");
  return {[alpha](const at::Tensor& x) { return at::elu(x, alpha); },
          planned_elu("elu", alpha, 1, 1, 1)};
}
Chosen celu(const Config& config) {
  const auto alpha = config.get<double>("alpha");
  // libtorch's gradient divides by a float32.
  return {[alpha](const at::Tensor& x) { return at::celu(x, alpha); },
          planned_elu("celu", alpha, 1, 1 / alpha, 1.0 / static_cast<float>(alpha))};
}
Chosen softplus(const Config& config) {
  const auto beta = config.get<double>("beta");
  const auto threshold = config.get<double>("threshold");
  return {
      [=](const at::Tensor& x) { return at::softplus(x, beta, threshold); },
      {"softplus",
       [=](at::Tensor& out, const Inputs& in) { at::softplus_out(out, in[0], beta, threshold); },
       [=](const PlanGradients& of) {
         at::softplus_backward_out(of.of_inputs[0], of.of_output, of.inputs[0], beta, threshold);
       }}};
}
Chosen hardtanh(const Config& config) {
  const auto min_val = config.get<double>("min_val");
  const auto max_val = config.get<double>("max_val");
  if (!(min_val < max_val))
    config.fail("max_val", "must be more than \"min_val\"");
  return {
      [=](const at::Tensor& x) { return at::hardtanh(x, min_val, max_val); },
      {"hardtanh",
       [=](at::Tensor& out, const Inputs& in) { at::hardtanh_out(out, in[0], min_val, max_val); },
       [=](const PlanGradients& of) {
         at::hardtanh_backward_out(of.of_inputs[0], of.of_output, of.inputs[0], min_val, max_val);
       }}};
}
Chosen log_softmax(const Config& config) {
  const auto dim = config.get<std::int64_t>("dim");
  return {[dim](const at::Tensor& x) { return at::log_softmax(x, dim); },
          {"log_softmax",
           [dim](at::Tensor& out, const Inputs& in) {
             at::_log_softmax_out(out, in[0], dim, /*half_to_float=*/false);
           },
           [dim](const PlanGradients& of) {
             at::_log_softmax_backward_data_out(of.of_inputs[0], of.of_output, of.output, dim,
                                                of.output.scalar_type());
           },
           {.inputs = false, .output = true}}};
}
Chosen glu(const Config& config) {
  const auto dim = config.get<std::int64_t>("dim");
  return {[dim](const at::Tensor& x) { return at::glu(x, dim); },
          {"glu",
           [dim](at::Tensor& out, const Inputs& in) { at::glu_out(out, in[0], dim); },
           [dim](const PlanGradients& of) {
             at::glu_backward_out(of.of_inputs[0], of.of_output, of.inputs[0], dim);
           },
           {},
           [dim](const TensorSpec& input) {
             TensorSpec half = input;
             half.sizes[axis_of(dim, input)] /= 2;
             return half;
           }}};
}

/// The factory reads the rule when it is made, so that mistakes in the document show then.
template <Choose kChoose>
class MadeActivation final : public LayerFactory {
 public:
  explicit MadeActivation(const Config& config) : config_(config) { kChoose(config); }

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Activation<kChoose>>(config_, spec);
  }
  Config config_;
};

}  // namespace

void add_activations(Registrar& registrar) {
  registrar.add<FactoryOf<Relu>, LayerFactory>("relu");
  registrar.add<FactoryOf<Plain<relu6, plan_relu6>>, LayerFactory>("relu6");
  registrar.add<FactoryOf<ScaledRelu>, LayerFactory>("scaled_relu");
  registrar.add<FactoryOf<Plain<sigmoid, plan_sigmoid>>, LayerFactory>("sigmoid");
  registrar.add<FactoryOf<Plain<log_sigmoid, plan_log_sigmoid>>, LayerFactory>("log_sigmoid");
  registrar.add<FactoryOf<Plain<tanh, plan_tanh>>, LayerFactory>("tanh");
  registrar.add<FactoryOf<Plain<silu, plan_silu>>, LayerFactory>("silu");
  registrar.add<FactoryOf<Plain<selu, plan_selu>>, LayerFactory>("selu");
  registrar.add<FactoryOf<Plain<mish, plan_mish>>, LayerFactory>("mish");
  registrar.add<FactoryOf<Plain<softsign, plan_softsign>>, LayerFactory>("softsign");
  registrar.add<FactoryOf<Plain<hardsigmoid, plan_hardsigmoid>>, LayerFactory>("hardsigmoid");
  registrar.add<FactoryOf<Plain<hardswish, plan_hardswish>>, LayerFactory>("hardswish");
  registrar.add<FactoryOf<Gelu>, LayerFactory>("gelu");
  registrar.add<MadeActivation<elu>, LayerFactory>("elu");
  registrar.add<MadeActivation<celu>, LayerFactory>("celu");
  registrar.add<FactoryOf<LeakyRelu>, LayerFactory>("leaky_relu");
  registrar.add<MadeActivation<softplus>, LayerFactory>("softplus");
  registrar.add<MadeActivation<hardtanh>, LayerFactory>("hardtanh");
  registrar.add<FactoryOf<Softmax>, LayerFactory>("softmax");
  registrar.add<MadeActivation<log_softmax>, LayerFactory>("log_softmax");
  registrar.add<MadeActivation<glu>, LayerFactory>("glu");
  registrar.add<FactoryOf<PRelu>, LayerFactory>("prelu");
}

}  // namespace treadle::layers
