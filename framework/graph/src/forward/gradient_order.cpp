#include "forward/gradient_order.h"

#include <cstddef>
#include <memory>

#include <ATen/ops/alias.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

namespace treadle::graph {
namespace {

/// A hook on one output of an autograd node. Not Tensor::register_hook(): that is not prepared for
/// an undefined gradient.
class MakesGradientContiguous final : public torch::autograd::FunctionPreHook {
 public:
  explicit MakesGradientContiguous(std::size_t output) : output_(output) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    torch::autograd::variable_list given = gradients;
    if (at::Tensor& gradient = given[output_]; gradient.defined())
      gradient = gradient.contiguous();
    return given;
  }

 private:
  std::size_t output_;
};

}  // namespace

at::Tensor contiguous_with_gradient(at::Tensor value) {
  if (!value.is_contiguous())
    value = value.contiguous();
  if (at::GradMode::is_enabled() && value.requires_grad() && !value.is_leaf()) {
    value.grad_fn()->add_pre_hook(
        std::make_unique<MakesGradientContiguous>(static_cast<std::size_t>(value.output_nr())));
  }
  return value;
}

at::Tensor accumulation_point(const at::Tensor& value) {
  return value.defined() && value.requires_grad() && at::GradMode::is_enabled() ? at::alias(value)
                                                                                : value;
}

}  // namespace treadle::graph
