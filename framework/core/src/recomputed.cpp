#include <treadle/core/recomputed.h>

#include <cstdint>
#include <utility>

#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <treadle/base/error.h>
#include <treadle/core/task_random.h>

namespace treadle {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What backward needs to run the segment again.
struct Recipe : torch::CustomClassHolder {
  Recipe(torch::nn::Module& owner, ForwardSegment segment, std::uint64_t seed)
      : owner(owner), segment(std::move(segment)), seed(seed) {}

  torch::nn::Module& owner;
  const ForwardSegment segment;
  const std::uint64_t seed;
  std::vector<bool> wanted;  // by input: whether it needs a gradient
};

/// Puts a module's buffers back to what they were when it was made.
class KeptBuffers {
 public:
  explicit KeptBuffers(torch::nn::Module& owner) : buffers_(owner.buffers()) {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& buffer : buffers_)
      values_.push_back(buffer.clone());
  }
  ~KeptBuffers() {
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      buffers_[i].copy_(values_[i]);
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> values_;
};

class Recomputation : public torch::autograd::Function<Recomputation> {
 public:
  /// `anchor` requires a gradient, and so do the outputs, also when only parameters inside need
  /// one.
  static variable_list forward(AutogradContext* context, c10::intrusive_ptr<Recipe> recipe,
                               const at::Tensor& /*anchor*/, at::TensorList inputs) {
    context->save_for_backward(inputs.vec());
    for (const at::Tensor& input : inputs)
      recipe->wanted.push_back(input.requires_grad());
    context->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
    const TaskRandom random(recipe->seed);
    return recipe->segment(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    if (at::GradMode::is_enabled()) {
      throw TrainingError(
          "a recomputed segment has no gradients of gradients; leave out the recomputation");
    }
    const auto recipe =
        c10::static_intrusive_pointer_cast<Recipe>(context->saved_data["recipe"].toCapsule());
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().set_requires_grad(recipe->wanted[inputs.size()]));
    }
    // Until all is done: backward wants the buffers as the segment left them.
    const KeptBuffers kept(recipe->owner);
    variable_list outputs;
    variable_list gradients;
    {
      const at::AutoGradMode record(true);
      const TaskRandom random(recipe->seed);
      const variable_list again = recipe->segment(inputs);
      for (std::size_t i = 0; i < again.size(); ++i) {
        if (!again[i].requires_grad() || !output_gradients[i].defined())
          continue;
        outputs.push_back(again[i]);
        gradients.push_back(output_gradients[i]);
      }
    }
    if (!outputs.empty())
      torch::autograd::backward(outputs, gradients);
    variable_list result(2);  // of the recipe and the anchor
    for (const at::Tensor& input : inputs)
      result.push_back(input.grad());
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> recomputed(torch::nn::Module& owner, ForwardSegment segment,
                                   const std::vector<at::Tensor>& inputs) {
  if (!at::GradMode::is_enabled())
    return segment(inputs);
  const at::Tensor anchor = at::zeros({}).set_requires_grad(true);
  return Recomputation::apply(c10::make_intrusive<Recipe>(owner, std::move(segment), draw_from_task()),
                              anchor, at::TensorList(inputs));
}

}  // namespace treadle
