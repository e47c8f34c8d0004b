#include <treadle/core/model/recomputed.h>

#include <cstdint>
#include <utility>

#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/tensor/autocast.h>
#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<at::Tensor> trained_parameters(const torch::nn::Module& owner) {
  std::vector<at::Tensor> trained;
  for (const at::Tensor& parameter : distinct_parameters(owner)) {
    if (parameter.requires_grad())
      trained.push_back(parameter);
  }
  return trained;
}

/// What backward needs to run the segment again.
struct Recipe : torch::CustomClassHolder {
  Recipe(torch::nn::Module& owner, ForwardSegment segment, std::uint64_t seed)
      : owner(owner),
        segment(std::move(segment)),
        seed(seed),
        parameters(trained_parameters(owner)) {}

  torch::nn::Module& owner;
  const ForwardSegment segment;
  const std::uint64_t seed;
  const std::vector<at::Tensor> parameters;
  const Autocast autocast = Autocast::of_this_thread();
  const std::optional<Float8Use> float8 = Float8Scope::of_this_thread();
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
  /// `all`: the inputs, then the recipe's parameters. Those are inputs, too: who asks for their
  /// gradients finds them, and nothing is written behind libtorch's back.
  static variable_list forward(AutogradContext* context, c10::intrusive_ptr<Recipe> recipe,
                               at::TensorList all) {
    const variable_list inputs = all.slice(0, all.size() - recipe->parameters.size()).vec();
    context->save_for_backward(inputs);
    // No gradient of the segment's where none comes back to it, instead of zeros.
    context->set_materialize_grads(false);
    for (const at::Tensor& input : inputs)
      recipe->wanted.push_back(input.requires_grad());
    context->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
    const TaskRandom random(recipe->seed);
    return recipe->segment(inputs);
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
      const AutocastScope autocast(recipe->autocast);
      const Float8Scope float8(recipe->float8);
      const variable_list again = recipe->segment(inputs);
      for (std::size_t i = 0; i < again.size(); ++i) {
        if (!again[i].requires_grad() || !output_gradients[i].defined())
          continue;
        outputs.push_back(again[i]);
        gradients.push_back(output_gradients[i]);
      }
    }
    variable_list result(1 + inputs.size() + recipe->parameters.size());  // of the recipe, of all
    variable_list wanted;
    std::vector<std::size_t> where;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!recipe->wanted[i])
        continue;
      wanted.push_back(inputs[i]);
      where.push_back(1 + i);
    }
    for (std::size_t i = 0; i < recipe->parameters.size(); ++i) {
      wanted.push_back(recipe->parameters[i]);
      where.push_back(1 + inputs.size() + i);
    }
    if (outputs.empty() || wanted.empty())
      return result;
    const variable_list found =
        torch::autograd::grad(outputs, wanted, gradients, /*retain_graph=*/false,
                              /*create_graph=*/false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < found.size(); ++i)
      result[where[i]] = found[i];
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> recomputed(torch::nn::Module& owner, ForwardSegment segment,
                                   const std::vector<at::Tensor>& inputs) {
  if (!at::GradMode::is_enabled())
    return segment(inputs);
  auto recipe = c10::make_intrusive<Recipe>(owner, std::move(segment), draw_from_task());
  std::vector<at::Tensor> all = inputs;
  all.insert(all.end(), recipe->parameters.begin(), recipe->parameters.end());
  return Recomputation::apply(std::move(recipe), at::TensorList(all));
}

}  // namespace treadle
