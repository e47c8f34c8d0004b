#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <treadle/plan/lowerable.h>
#include <treadle/plan/op.h>

namespace treadle::testing {

/// Carries out the operations of a Lowerable layer one by one, and then its gradients, without
/// libtorch recording any: what a compiled graph does, with nothing in between.
class PlanInterpreter final : public PlanBuilder {
 public:
  explicit PlanInterpreter(bool truncates_bptt = false) : truncates_bptt_(truncates_bptt) {}

  PlanValue give(const at::Tensor& tensor, bool needs_gradient) {
    return add({tensor.detach(), needs_gradient});
  }

  /// An operation that was carried out.
  struct Applied {
    std::shared_ptr<const PlanOp> operation;
    std::vector<at::Tensor> inputs;
    at::Tensor output;
  };
  /// In order.
  const std::vector<Applied>& applied() const { return applied_; }

  const at::Tensor& value(PlanValue value) const { return at(value).tensor; }

  /// Of all values and parameters, given that of `result`.
  void back_propagate(PlanValue result, const at::Tensor& gradient) {
    const at::NoGradGuard no_gradients;
    at(result).gradient = gradient;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
      (*step)();
  }

  /// Undefined where none arrived.
  const at::Tensor& gradient(PlanValue value) const { return at(value).gradient; }
  at::Tensor gradient_of_parameter(const at::Tensor& parameter) const {
    for (const auto& [known, gradient] : parameters_) {
      if (known.is_same(parameter))
        return gradient;
    }
    return {};
  }

  const TensorSpec& spec(PlanValue value) const override { return at(value).spec; }

  PlanValue apply(std::shared_ptr<const PlanOp> op, std::span<const PlanValue> inputs) override {
    const at::NoGradGuard no_gradients;
    std::vector<at::Tensor> given;
    std::vector<TensorSpec> specs;
    bool needs_gradient = false;
    for (const PlanValue input : inputs) {
      given.push_back(value(input));
      specs.push_back(spec(input));
      needs_gradient = needs_gradient || at(input).needs_gradient;
    }
    for (const at::Tensor& parameter : op->parameters())
      needs_gradient = needs_gradient || parameter.requires_grad();
    at::Tensor output;
    std::vector<at::Tensor> kept(op->keeps(specs).size());
    if (!op->allocates()) {
      output = room_for(op->result(specs));
      const std::vector<TensorSpec> keeps = op->keeps(specs);
      for (std::size_t i = 0; i < kept.size(); ++i)
        kept[i] = room_for(keeps[i]);
    }
    op->forward(given, output, kept);
    applied_.push_back({op, given, output});
    const PlanValue result = add({output, needs_gradient});
    if (needs_gradient) {
      std::vector<PlanValue> of(inputs.begin(), inputs.end());
      steps_.push_back([this, op, of, specs, given, result, kept] {
        back_propagate_through(*op, of, specs, given, result, kept);
      });
    }
    return result;
  }

  PlanValue elementwise(ElementwiseOp op, PlanValue a, double number) override {
    const at::NoGradGuard no_gradients;
    const at::Tensor x = value(a);
    const PlanValue result = add({one(op, x, number), at(a).needs_gradient});
    steps_.push_back([this, op, a, x, number, result] {
      const at::Tensor& given = gradient(result);
      if (!given.defined())
        return;
      switch (op) {
        case ElementwiseOp::kScale:
          return collect(a, at::mul(given, number));
        case ElementwiseOp::kDivide:
          return collect(a, at::div(given, number));
        case ElementwiseOp::kRelu:
          return collect(a, at::threshold_backward(given, value(result), 0));
        case ElementwiseOp::kLeakyRelu:
          return collect(a, at::leaky_relu_backward(given, x, number, false));
        default:
          return collect(a, given);
      }
    });
    return result;
  }

  PlanValue elementwise(ElementwiseOp op, PlanValue a, PlanValue b) override {
    const at::NoGradGuard no_gradients;
    const at::Tensor x = value(a);
    const at::Tensor y = value(b);
    const PlanValue result = add({two(op, x, y), at(a).needs_gradient || at(b).needs_gradient});
    steps_.push_back([this, op, a, b, x, y, result] {
      const at::Tensor& given = gradient(result);
      if (!given.defined())
        return;
      const bool is_product = op == ElementwiseOp::kMultiply;
      collect(a, is_product ? at::mul(given, y) : given);
      collect(b, is_product                       ? at::mul(given, x)
                 : op == ElementwiseOp::kSubtract ? at::neg(given)
                                                  : given);
    });
    return result;
  }

  PlanValue reshape(PlanValue value, std::vector<std::int64_t> sizes) override {
    const at::Tensor x = this->value(value);
    const PlanValue result = add({x.reshape(sizes), at(value).needs_gradient});
    steps_.push_back([this, value, x, result] {
      if (gradient(result).defined())
        collect(value, gradient(result).reshape(x.sizes()));
    });
    return result;
  }

  PlanValue detached(PlanValue value) override {
    return add({this->value(value), /*needs_gradient=*/false});
  }
  bool truncates_bptt() const override { return truncates_bptt_; }

 private:
  struct Entry {
    Entry(at::Tensor tensor, bool needs_gradient)
        : tensor(std::move(tensor)),
          spec(TensorSpec::of(this->tensor)),
          needs_gradient(needs_gradient) {}
    at::Tensor tensor;
    TensorSpec spec;
    bool needs_gradient;
    at::Tensor gradient;
  };

  Entry& at(PlanValue value) { return entries_[static_cast<std::size_t>(value)]; }
  const Entry& at(PlanValue value) const { return entries_[static_cast<std::size_t>(value)]; }

  PlanValue add(Entry entry) {
    entries_.push_back(std::move(entry));
    return static_cast<PlanValue>(entries_.size() - 1);
  }

  /// What an operation must write all of: anything may have been there.
  static at::Tensor room_for(const TensorSpec& spec) {
    return at::empty(spec.sizes, at::TensorOptions(spec.dtype)).fill_(77);
  }

  static at::Tensor one(ElementwiseOp op, const at::Tensor& x, double number) {
    switch (op) {
      case ElementwiseOp::kScale:
        return at::mul(x, number);
      case ElementwiseOp::kDivide:
        return at::div(x, number);
      case ElementwiseOp::kShift:
        return at::add(x, number);
      case ElementwiseOp::kRelu:
        return at::relu(x);
      default:
        return at::leaky_relu(x, number);
    }
  }

  static at::Tensor two(ElementwiseOp op, const at::Tensor& x, const at::Tensor& y) {
    switch (op) {
      case ElementwiseOp::kAdd:
        return at::add(x, y);
      case ElementwiseOp::kSubtract:
        return at::sub(x, y);
      default:
        return at::mul(x, y);
    }
  }

  void collect(PlanValue value, const at::Tensor& gradient) {
    Entry& entry = at(value);
    if (entry.needs_gradient)
      entry.gradient = entry.gradient.defined() ? entry.gradient.add(gradient) : gradient;
  }

  void back_propagate_through(const PlanOp& op, const std::vector<PlanValue>& of,
                              const std::vector<TensorSpec>& specs,
                              const std::vector<at::Tensor>& given, PlanValue result,
                              const std::vector<at::Tensor>& kept) {
    if (!gradient(result).defined())
      return;
    const PlanOp::Reads reads = op.backward_reads();
    std::vector<at::Tensor> of_inputs(of.size());
    const auto wanted = std::make_unique<bool[]>(of.size());
    for (std::size_t i = 0; i < of.size(); ++i) {
      wanted[i] = at(of[i]).needs_gradient;
      if (wanted[i] && !op.allocates())
        of_inputs[i] = room_for(specs[i]);
    }
    const std::vector<at::Tensor> parameters = op.parameters();
    std::vector<at::Tensor> of_parameters;
    for (const at::Tensor& parameter : parameters)
      of_parameters.push_back(parameter.requires_grad() ? at::zeros_like(parameter) : at::Tensor());
    const std::vector<at::Tensor> nothing(given.size());
    const at::Tensor none;
    op.backward({gradient(result), reads.inputs ? given : nothing,
                 reads.output ? value(result) : none, kept, of_inputs, specs,
                 std::span<const bool>(wanted.get(), of.size()), of_parameters});
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (wanted[i] && of_inputs[i].defined())
        collect(of[i], of_inputs[i]);
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (of_parameters[i].defined())
        parameters_.emplace_back(parameters[i], of_parameters[i]);
    }
  }

  bool truncates_bptt_;
  std::vector<Applied> applied_;
  std::vector<Entry> entries_;
  std::vector<std::function<void()>> steps_;
  std::vector<std::pair<at::Tensor, at::Tensor>> parameters_;
};

}  // namespace treadle::testing
