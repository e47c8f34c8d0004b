#include "activations.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <ATen/ops/celu.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/prelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>

#include <treadle/core/layer.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>

#include "made.h"

namespace treadle::layers {
namespace {

using Rule = std::function<at::Tensor(const at::Tensor&)>;
using MakeRule = Rule (*)(const Config& config);

/// rule(x), with what the document says of the rule read once.
template <MakeRule kMake>
class Activation final : public Layer {
 public:
  Activation(const Config& config, const LayerSpec& spec) : rule_(kMake(config)) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return rule_(inputs[0]); }

 private:
  Rule rule_;
};

/// A rule without parameters needs no std::function: it is called as often as anything.
template <at::Tensor (*kRule)(const at::Tensor&)>
class Plain final : public Layer {
 public:
  Plain(const Config&, const LayerSpec& spec) { only_input(spec); }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return kRule(inputs[0]); }
};

/// The same, where a plan knows the function.
template <at::Tensor (*kRule)(const at::Tensor&), std::shared_ptr<const PlanOp> (*kPlanned)()>
class PlainUnary final : public Layer, public Lowerable {
 public:
  PlainUnary(const Config&, const LayerSpec& spec) { only_input(spec); }
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

/// max(0, x) + a · min(0, x), a learned: one number, or one for each channel (dimension 1).
class PRelu final : public Layer {
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

 private:
  at::Tensor weight_;
};

at::Tensor relu6(const at::Tensor& x) {
  return at::clamp(x, 0, 6);
}
/// The slope keeps a little more of the signal than relu does. Its result is all that backward
/// reads.
at::Tensor scaled_relu(const at::Tensor& x) {
  return at::relu(x.mul(1.1));
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

Rule elu(const Config& config) {
  return [alpha = config.get<double>("alpha")](const at::Tensor& x) { return at::elu(x, alpha); };
}
Rule celu(const Config& config) {
  return [alpha = config.get<double>("alpha")](const at::Tensor& x) { return at::celu(x, alpha); };
}
Rule softplus(const Config& config) {
  return [beta = config.get<double>("beta"), threshold = config.get<double>("threshold")](
             const at::Tensor& x) { return at::softplus(x, beta, threshold); };
}
Rule hardtanh(const Config& config) {
  const auto min_val = config.get<double>("min_val");
  const auto max_val = config.get<double>("max_val");
  if (!(min_val < max_val))
    config.fail("max_val", "must be more than \"min_val\"");
  return [min_val, max_val](const at::Tensor& x) { return at::hardtanh(x, min_val, max_val); };
}
Rule log_softmax(const Config& config) {
  return [dim = config.get<std::int64_t>("dim")](const at::Tensor& x) {
    return at::log_softmax(x, dim);
  };
}
Rule glu(const Config& config) {
  return [dim = config.get<std::int64_t>("dim")](const at::Tensor& x) { return at::glu(x, dim); };
}

/// The factory reads the rule when it is made, so that mistakes in the document show then.
template <MakeRule kMake>
class MadeActivation final : public LayerFactory {
 public:
  explicit MadeActivation(const Config& config) : config_(config) { kMake(config); }

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Activation<kMake>>(config_, spec);
  }
  Config config_;
};

}  // namespace

void add_activations(Registrar& registrar) {
  registrar.add<Made<Relu>, LayerFactory>("relu");
  registrar.add<Made<Plain<relu6>>, LayerFactory>("relu6");
  registrar.add<Made<Plain<scaled_relu>>, LayerFactory>("scaled_relu");
  registrar.add<Made<PlainUnary<sigmoid, plan_sigmoid>>, LayerFactory>("sigmoid");
  registrar.add<Made<Plain<log_sigmoid>>, LayerFactory>("log_sigmoid");
  registrar.add<Made<PlainUnary<tanh, plan_tanh>>, LayerFactory>("tanh");
  registrar.add<Made<PlainUnary<silu, plan_silu>>, LayerFactory>("silu");
  registrar.add<Made<Plain<selu>>, LayerFactory>("selu");
  registrar.add<Made<Plain<mish>>, LayerFactory>("mish");
  registrar.add<Made<Plain<softsign>>, LayerFactory>("softsign");
  registrar.add<Made<Plain<hardsigmoid>>, LayerFactory>("hardsigmoid");
  registrar.add<Made<Plain<hardswish>>, LayerFactory>("hardswish");
  registrar.add<Made<Gelu>, LayerFactory>("gelu");
  registrar.add<MadeActivation<elu>, LayerFactory>("elu");
  registrar.add<MadeActivation<celu>, LayerFactory>("celu");
  registrar.add<Made<LeakyRelu>, LayerFactory>("leaky_relu");
  registrar.add<MadeActivation<softplus>, LayerFactory>("softplus");
  registrar.add<MadeActivation<hardtanh>, LayerFactory>("hardtanh");
  registrar.add<Made<Softmax>, LayerFactory>("softmax");
  registrar.add<MadeActivation<log_softmax>, LayerFactory>("log_softmax");
  registrar.add<MadeActivation<glu>, LayerFactory>("glu");
  registrar.add<Made<PRelu>, LayerFactory>("prelu");
}

}  // namespace treadle::layers
