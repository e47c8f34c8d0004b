#include <treadle/core/gradient_strategy.h>

#include <string>
#include <utility>
#include <vector>

#include <treadle/core/plugin_call.h>

namespace treadle {
namespace {

thread_local bool one_step = false;

/// A carried state belongs to the graph of the batch that made it, and that graph is gone after its
/// backward.
void detach(StateDict& state) {
  std::vector<std::string> attached;
  for (const auto& [name, tensor] : state.tensors()) {
    if (tensor.requires_grad())
      attached.push_back(name);
  }
  for (const std::string& name : attached)
    state.put(name, state.tensor(name).detach());
  std::vector<std::string> parts;
  for (const auto& [name, part] : state.parts())
    parts.push_back(name);
  for (const std::string& name : parts) {
    StateDict part = state.part(name);
    detach(part);
    state.put(name, std::move(part));
  }
}

}  // namespace

LossTerms GradientStrategy::add_gradients(const GradientTask& task, const Batch& batch,
                                          ForwardContext& context) const {
  LossTerms terms =
      call_plugin(*this, "add_gradients", [&] { return do_add_gradients(task, batch, context); });
  if (!terms.sum.defined())
    refuse_result(*this, "add_gradients", "returned no loss");
  return terms;
}

LossTerms back_propagate(const GradientTask& task, const Batch& batch, ForwardContext& context) {
  Outputs outputs(task.outputs);
  LossTerms terms;
  {
    const Timeline::Span span(task.timeline, Phase::kForward);
    (*task.model)(batch.inputs, outputs, context);
    terms = task.loss->forward(outputs, batch);
  }
  const Timeline::Span span(task.timeline, Phase::kBackward);
  call_plugin(*task.model, "backward", [&] { terms.sum.backward(); });
  if (!context.carried.empty())
    detach(context.carried);
  return {terms.sum.detach(), terms.weight};
}

OneStepGradients::OneStepGradients() : before_(std::exchange(one_step, true)) {}

OneStepGradients::~OneStepGradients() {
  one_step = before_;
}

bool one_step_gradients() {
  return one_step;
}

}  // namespace treadle
