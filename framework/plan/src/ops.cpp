#include <treadle/plan/ops.h>

#include <string>
#include <utility>

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>

#include <treadle/base/error.h>
#include <treadle/core/model/model.h>
#include <treadle/plan/folding.h>
#include <treadle/plan/lowerable.h>

// Operations call libtorch's out-variants of the kernels that autograd would run, with the same
// arguments: that is what makes the bits the same. Of a parameter, backward() adds the gradient
// with the kernel that computes it where there is one (addmm_), as the first addition to a sum of
// zeros.

namespace treadle {

PlanOp::~PlanOp() = default;
PlanBuilder::~PlanBuilder() = default;
Lowerable::~Lowerable() = default;
Recordable::~Recordable() = default;

TensorSpec PlanOp::result(std::span<const TensorSpec>) const {
  throw UsageError("operation \"" + std::string(name()) +
                   "\" does not allocate, so it must override result()");
}

std::vector<TensorSpec> PlanOp::keeps(std::span<const TensorSpec>) const {
  return {};
}

namespace {

class Linear final : public PlanOp, public TakesChannelMap {
 public:
  Linear(const at::Tensor& weight, const at::Tensor& bias)
      : weight_(weight), bias_(bias), transposed_(weight.detach().t()) {}

  std::string_view name() const override { return "linear"; }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    TensorSpec result = inputs[0];
    result.sizes.back() = weight_.size(0);
    return result;
  }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    const at::Tensor rows = rows_of(inputs[0]);
    at::Tensor given = rows_of(output);
    if (bias_.defined()) {
      at::addmm_out(given, bias_, rows, transposed_);
    } else {
      at::mm_out(given, rows, transposed_);
    }
  }

  void backward(const PlanGradients& gradients) const override {
    const at::Tensor gradient = rows_of(gradients.of_output);
    if (gradients.wanted[0]) {
      at::Tensor of_input = rows_of(gradients.of_inputs[0]);
      at::mm_out(of_input, gradient, weight_);
    }
    if (gradients.of_parameters[0].defined())
      gradients.of_parameters[0].addmm_(gradient.t(), rows_of(gradients.inputs[0]));
    if (bias_.defined() && gradients.of_parameters[1].defined())
      gradients.of_parameters[1].add_(gradient.sum({0}));
  }

  std::vector<at::Tensor> parameters() const override {
    return bias_.defined() ? std::vector{weight_, bias_} : std::vector{weight_};
  }

  std::shared_ptr<const PlanOp> followed_by(const ChannelMap& map,
                                            const TensorSpec& result) const override {
    if (map.dim != static_cast<std::int64_t>(result.sizes.size()) - 1)
      return nullptr;
    const auto [weight, bias] = fold_channel_map(map, weight_, bias_);
    return std::make_shared<Linear>(weight, bias);
  }

 private:
  static at::Tensor rows_of(const at::Tensor& tensor) {
    return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
  }

  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor transposed_;
};

class Softmax final : public PlanOp {
 public:
  explicit Softmax(std::int64_t dim) : dim_(dim) {}

  std::string_view name() const override { return "softmax"; }
  TensorSpec result(std::span<const TensorSpec> inputs) const override { return inputs[0]; }
  Reads backward_reads() const override { return {.inputs = false, .output = true}; }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    at::_softmax_out(output, inputs[0], dim_, /*half_to_float=*/false);
  }
  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0]) {
      at::_softmax_backward_data_out(gradients.of_inputs[0], gradients.of_output, gradients.output,
                                     dim_, gradients.output.scalar_type());
    }
  }

 private:
  std::int64_t dim_;
};

class Cat final : public PlanOp {
 public:
  explicit Cat(std::int64_t dim) : dim_(dim) {}

  std::string_view name() const override { return "cat"; }
  Reads backward_reads() const override { return {.inputs = false, .output = false}; }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    TensorSpec result = inputs[0];
    std::int64_t& size = result.sizes[axis(result)];
    for (const TensorSpec& input : inputs.subspan(1))
      size += input.sizes[axis(input)];
    return result;
  }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    at::cat_out(output, at::TensorList(inputs.data(), inputs.size()), dim_);
  }

  void backward(const PlanGradients& gradients) const override {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < gradients.of_inputs.size(); ++i) {
      const std::int64_t size = gradients.sizes[i].sizes[axis(gradients.sizes[i])];
      if (gradients.wanted[i])
        gradients.of_inputs[i].copy_(gradients.of_output.narrow(dim_, begin, size));
      begin += size;
    }
  }

 private:
  std::size_t axis(const TensorSpec& spec) const {
    return static_cast<std::size_t>(dim_ < 0 ? dim_ + static_cast<std::int64_t>(spec.sizes.size())
                                             : dim_);
  }

  std::int64_t dim_;
};

class Function final : public PlanOp {
 public:
  explicit Function(PlanFunction function) : function_(std::move(function)) {}

  std::string_view name() const override { return function_.name; }
  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    return function_.result ? function_.result(inputs[0]) : inputs[0];
  }
  Reads backward_reads() const override { return function_.reads; }
  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    function_.forward(output, inputs);
  }
  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0])
      function_.backward(gradients);
  }

 private:
  PlanFunction function_;
};

constexpr PlanOp::Reads kOutputOnly{.inputs = false, .output = true};

}  // namespace

std::shared_ptr<const PlanOp> plan_linear(const at::Tensor& weight, const at::Tensor& bias) {
  return std::make_shared<Linear>(weight, bias);
}

std::shared_ptr<const PlanOp> plan_softmax(std::int64_t dim) {
  return std::make_shared<Softmax>(dim);
}

std::shared_ptr<const PlanOp> plan_function(PlanFunction function) {
  return std::make_shared<Function>(std::move(function));
}

std::shared_ptr<const PlanOp> plan_cat(std::int64_t dim) {
  return std::make_shared<Cat>(dim);
}

std::shared_ptr<const PlanOp> plan_sigmoid() {
  return plan_function({"sigmoid",
                        [](at::Tensor& out, const Inputs& in) { at::sigmoid_out(out, in[0]); },
                        [](const PlanGradients& of) {
                          at::sigmoid_backward_out(of.of_inputs[0], of.of_output, of.output);
                        },
                        kOutputOnly});
}

std::shared_ptr<const PlanOp> plan_tanh() {
  return plan_function({"tanh", [](at::Tensor& out, const Inputs& in) { at::tanh_out(out, in[0]); },
                        [](const PlanGradients& of) {
                          at::tanh_backward_out(of.of_inputs[0], of.of_output, of.output);
                        },
                        kOutputOnly});
}

std::shared_ptr<const PlanOp> plan_silu() {
  return plan_function({"silu", [](at::Tensor& out, const Inputs& in) { at::silu_out(out, in[0]); },
                        [](const PlanGradients& of) {
                          at::silu_backward_out(of.of_inputs[0], of.of_output, of.inputs[0]);
                        }});
}

std::shared_ptr<const PlanOp> plan_gelu(bool by_tanh) {
  const char* const approximate = by_tanh ? "tanh" : "none";
  return plan_function(
      {"gelu",
       [approximate](at::Tensor& out, const Inputs& in) { at::gelu_out(out, in[0], approximate); },
       [approximate](const PlanGradients& of) {
         at::gelu_backward_out(of.of_inputs[0], of.of_output, of.inputs[0], approximate);
       }});
}

std::shared_ptr<const PlanOp> plan_elu() {
  return plan_function({"elu", [](at::Tensor& out, const Inputs& in) { at::elu_out(out, in[0]); },
                        [](const PlanGradients& of) {
                          at::elu_backward_out(of.of_inputs[0], of.of_output, /*alpha=*/1,
                                               /*scale=*/1, /*input_scale=*/1,
                                               /*is_result=*/false, of.inputs[0]);
                        }});
}

}  // namespace treadle
