#include <treadle/engine/training_step.h>

#include <cmath>

#include <ATen/ops/linalg_vector_norm.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/plugin_call.h>
#include <treadle/core/task_random.h>

namespace treadle::engine {

TrainingStep::TrainingStep(Model& model, const Loss& loss, const Optimizer& optimizer,
                           std::size_t output_count, Clipping clipping)
    : model_(model),
      loss_(loss),
      optimizer_(optimizer),
      output_count_(output_count),
      clipping_(clipping),
      arena_(model),
      slots_(optimizer.slots(), arena_) {}

TrainingStep::~TrainingStep() = default;

void TrainingStep::set_totals(double sum, double weight) {
  loss_sum_ = sum;
  loss_weight_ = weight;
}

bool TrainingStep::run(const Batch& batch, std::int64_t step, double learning_rate,
                       std::uint64_t seed) {
  double sum = 0;
  double weight = static_cast<double>(batch.size());
  arena_.zero_gradients();
  {
    const TaskRandom random(seed);
    outputs_.assign(output_count_, at::Tensor());
    model_(batch.inputs, outputs_, context_);
    const LossTerms terms = loss_.forward(outputs_, batch);
    call_plugin(model_, "backward", [&] { terms.sum.backward(); });
    sum = terms.sum.item<double>();
    if (terms.weight.defined()) weight = terms.weight.item<double>();
    // Lets go of the graph, and with it of the batch, before the next one is asked for.
    outputs_.clear();
  }
  arena_.collect();
  loss_sum_ += sum;
  loss_weight_ += weight;
  if (!std::isfinite(sum)) return false;
  // A batch whose rows all weigh nothing says nothing.
  if (weight == 0) return true;

  const at::NoGradGuard no_gradients;
  const double scale = clip(1.0 / weight);
  if (!std::isfinite(scale)) return false;
  Block block(arena_, slots_);
  optimizer_.update(block, {step, learning_rate, scale});
  return true;
}

/// Applies both bounds; returns the factor that is left for the optimizer to apply. Not finite when a gradient is not.
double TrainingStep::clip(double scale) {
  const at::Tensor& gradients = arena_.gradients();
  if (clipping_.value > 0) {
    const double bound = clipping_.value / scale;
    gradients.clamp_(-bound, bound);
  }
  // A sum, like a norm, is finite only when everything in it is.
  if (clipping_.norm == 0) return std::isfinite(gradients.sum().item<double>()) ? scale : NAN;
  const double norm = at::linalg_vector_norm(gradients, 2).item<double>() * scale;
  if (!std::isfinite(norm)) return norm;
  return norm > clipping_.norm ? scale * (clipping_.norm / norm) : scale;
}

}  // namespace treadle::engine
