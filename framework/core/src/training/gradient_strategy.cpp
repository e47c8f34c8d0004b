#include <treadle/core/training/gradient_strategy.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/model/abilities/logs_values.h>

namespace treadle {
namespace {

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

std::vector<BatchLoss::Term> forward_terms(const GradientTask& task, const Batch& batch,
                                           ForwardContext& context) {
  if (task.loss != nullptr) {
    if (!batch.mixture.is_empty()) {
      throw UsageError(
          "mixup and cutmix mix the targets of rows, and this training loop computes a loss of its "
          "own, which does not mix them; leave those transforms out");
    }
    LossTerms terms = (*task.loss)(*task.model, batch, context);
    return {{std::move(terms.sum), std::move(terms.weight), static_cast<double>(batch.size())}};
  }
  Outputs outputs(task.objective->outputs().size());
  if (task.objective->output_chunks() == 0) {
    (*task.model)(batch.inputs, outputs, context);
    return task.objective->forward(outputs, batch);
  }
  // Scales of float8 are those of whole tensors.
  if (context.precision().float8) {
    throw UsageError(
        "num_output_chunks is for precisions other than fp8; choose another, or leave "
        "num_output_chunks out");
  }
  context.set_takes_deferred_output(true);
  (*task.model)(batch.inputs, outputs, context);
  context.set_takes_deferred_output(false);
  const auto deferred = std::exchange(context.deferred_output(), std::nullopt);
  if (!deferred) {
    throw UsageError(
        "num_output_chunks needs a model whose last layer computes each position by itself and is "
        "read by nothing else: end the flow with a head or a dense layer that is not logged, or "
        "leave num_output_chunks out");
  }
  return task.objective->forward_in_chunks(*deferred, batch);
}

Objective::Scales scales_of(const GradientTask& task, const Batch& batch) {
  return task.loss != nullptr ? Objective::Scales() : Objective::Scales(*task.objective, batch);
}

}  // namespace

bool GradientStrategy::splits_batch() const {
  return call_plugin(*this, "splits_batch", [&] { return do_splits_batch(); });
}

BatchLoss GradientStrategy::add_gradients(const GradientTask& task, const Batch& batch,
                                          ForwardContext& context) const {
  BatchLoss loss =
      call_plugin(*this, "add_gradients", [&] { return do_add_gradients(task, batch, context); });
  if (loss.terms.empty())
    refuse_result(*this, "add_gradients", "returned no loss");
  return loss;
}

std::vector<std::string> GradientStrategy::log_names() const {
  const auto* logs = dynamic_cast<const LogsValues*>(this);
  if (logs == nullptr)
    return {};
  return call_plugin(*this, "logged_names", [&] { return logs->logged_names(); });
}

BatchLoss back_propagate(const GradientTask& task, const Batch& batch, ForwardContext& context) {
  BatchLoss loss;
  context.set_batch(&batch);
  context.set_takes_losses(task.loss == nullptr);
  {
    const Timeline::Span span(task.timeline, Phase::kForward);
    loss.terms = forward_terms(task, batch, context);
    loss.auxiliary = context.take_losses();
  }
  context.set_batch(nullptr);
  const Timeline::Span span(task.timeline, Phase::kBackward);
  const at::Tensor sum =
      task.scales != nullptr ? task.scales->combine(loss) : scales_of(task, batch).combine(loss);
  if (!sum.requires_grad()) {
    throw TrainingError(
        "the loss depends on no parameter that is trained, so there is no gradient: those that "
        "lead "
        "to the model's outputs are frozen; freeze fewer of them");
  }
  call_plugin(*task.model, "backward", [&] { sum.backward(); });
  if (!context.state().empty())
    detach(context.state());
  for (BatchLoss::Term& term : loss.terms)
    term.sum = term.sum.detach();
  for (AuxiliaryLoss& one : loss.auxiliary)
    one.sum = one.sum.detach();
  return loss;
}

BatchLoss add_gradients_in_parts(const GradientTask& task, const Batch& batch,
                                 ForwardContext& context, std::int64_t parts,
                                 const PartWork& work) {
  if (task.loss == nullptr && !task.objective->is_additive()) {
    throw UsageError(
        "a loss that is computed over whole batches (correlation, Sharpe) has no gradients to "
        "accumulate over parts of them; leave training.gradients out");
  }
  // Scaled for the whole batch: each part's own weights would give it another share.
  const Objective::Scales whole = scales_of(task, batch);
  GradientTask of_part = task;
  if (of_part.scales == nullptr)
    of_part.scales = &whole;
  parts = std::clamp<std::int64_t>(parts, 1, std::max<std::int64_t>(batch.size(), 1));
  BatchLoss total;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = batch.size() * i / parts;
    const Batch part = batch.slice(begin, batch.size() * (i + 1) / parts - begin);
    const std::string name = "part-" + std::to_string(i + 1);
    ForwardContext part_context = context.part(name);
    try {
      total.add(work(of_part, part, part_context));
    } catch (const TrainingError& error) {
      if (part.size() != 1 || batch.size() == 1)
        throw;
      throw TrainingError(std::string(error.what()) + " (" + std::to_string(batch.size()) +
                          " rows in " + std::to_string(parts) +
                          " micro-batches leave one of a single row; take fewer)");
    }
    context.join(name, std::move(part_context));
  }
  return total;
}

TruncatingBptt::TruncatingBptt(ForwardContext& context)
    : context_(context), before_(context.truncates_bptt()) {
  context_.set_truncated_bptt(true);
}

TruncatingBptt::~TruncatingBptt() {
  context_.set_truncated_bptt(before_);
}

}  // namespace treadle
