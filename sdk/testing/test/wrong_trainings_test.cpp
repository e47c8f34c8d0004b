#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/randint.h>

#include <treadle/testing/training_contract.h>

#include "wrong.h"

namespace treadle::testing {
namespace wrong_trainings {
namespace {

/// The simplest training loop that keeps the contract: a fixed number of epochs, a checkpoint after
/// each and at a stop. What a wrong one does otherwise it overrides.
class Plain : public TrainingWorkflow {
 protected:
  /// What a checkpoint holds beside weights and slots.
  struct Progress {
    double steps = 0;
    double sum = 0;  ///< of the losses of the epoch so far
    double weight = 0;
    double best_loss = std::numeric_limits<double>::infinity();
    double best_epoch = 0;
    double final_loss = 0;

    static constexpr std::pair<const char*, double Progress::*> kMembers[] = {
        {"steps", &Progress::steps},           {"sum", &Progress::sum},
        {"weight", &Progress::weight},         {"best_loss", &Progress::best_loss},
        {"best_epoch", &Progress::best_epoch}, {"final_loss", &Progress::final_loss}};
  };

  virtual std::uint64_t seed_of(std::int64_t step, RunContext& context) const {
    return context.random().seed("step", {static_cast<std::uint64_t>(step)});
  }
  virtual void add(Progress& progress, double sum, double weight) const {
    progress.sum += sum;
    progress.weight += weight;
  }
  virtual bool is_sound(const ParameterArena& arena) const {
    return arena.parameters().isfinite().all().item<bool>();
  }
  virtual at::Tensor in_units_of_data(const TrainingTask& task, at::Tensor predictions) const {
    for (auto t = task.transforms.rbegin(); t != task.transforms.rend(); ++t)
      predictions = (*t)->invert(predictions, "price");
    return predictions;
  }
  virtual void save(RunContext& context, const StateDict& state,
                    const TrainingPosition& position) const {
    context.save_checkpoint(state, position, 1);
  }
  virtual StepProgress told_step(StepProgress progress) const { return progress; }
  virtual EpochSummary told_epoch(EpochSummary summary) const { return summary; }
  virtual TrainingResult told_result(TrainingResult result) const { return result; }
  virtual std::string place(std::int64_t epoch, std::int64_t step) const {
    return "epoch " + std::to_string(epoch) + ", step " + std::to_string(step) + ": ";
  }
  virtual bool is_sound_gradient(const ParameterArena& arena) const {
    return arena.gradients().isfinite().all().item<bool>();
  }
  virtual std::int64_t epochs_of(const TrainingTask& task) const {
    return task.fixed_epochs > 0 ? task.fixed_epochs : planned_epochs();
  }
  virtual StateDict slots_to_save(const OptimizerSlots& slots) const { return slots.state(); }
  virtual bool saves_masters() const { return true; }
  virtual bool is_new(const std::optional<StateDict>& resumed) const { return !resumed; }
  virtual StateDict carried() const { return {}; }
  virtual void keep_carried(const StateDict&) const {}
  virtual void put_modes_back(TrainingTask& task, const std::vector<bool>& modes) const {
    std::size_t i = 0;
    for (const auto& module : modules_of(task))
      module->train(modes[i++]);
  }

 private:
  BatchPlan do_batch_plan() const override { return {16, 8, true, false}; }
  std::int64_t do_planned_epochs() const override { return 4; }

  TrainingResult do_train(TrainingTask& task, RunContext& context) override {
    ParameterArena arena(*task.model);
    OptimizerSlots slots(task.optimizer->slots(), arena);
    Progress progress;
    if (const auto resumed = context.resume_state(); !is_new(resumed)) {
      for (const auto& [name, member] : Progress::kMembers)
        progress.*member = resumed->number(name);
      load_module_state(*task.model, resumed->part("model"));
      if (resumed->has_part("slots"))
        slots.load_state(resumed->part("slots"));
      if (resumed->has_tensor("masters")) {
        arena.parameters().copy_(resumed->tensor("masters"));
        arena.write_back();
      }
    }
    const std::int64_t epochs = epochs_of(task);
    const std::int64_t per_epoch = task.training->batches_per_epoch();
    const ScheduleSpan span{task.optimizer->learning_rate(), epochs * per_epoch, per_epoch};

    auto step = static_cast<std::int64_t>(progress.steps);
    while (step < span.total_steps) {
      const std::int64_t epoch = step / per_epoch;
      const auto stream = task.training->epoch(epoch, step % per_epoch);
      double rate = 0;
      for (Batch batch; stream->next(batch);) {
        rate = task.schedule->rate_at(step, span);
        progress.steps = static_cast<double>(++step);
        const std::string where = place(epoch + 1, step);
        take_step(task, context, arena, slots, batch, {step, rate, 1}, progress, where);
        context.step_completed(told_step(StepProgress{epoch + 1, epochs, step, span.total_steps}));
        if (context.stop_token().stop_requested() && step % per_epoch != 0)
          stop(task, context, arena, slots, progress, per_epoch);
      }
      EpochSummary summary;
      summary.epoch = epoch + 1;
      summary.epochs = epochs;
      summary.step = step;
      summary.learning_rate = rate;
      end_epoch(task, context, progress, std::move(summary));
      const TrainingPosition position{epoch + 1, step, true, step == span.total_steps};
      save(context, state_of(task, arena, slots, progress), position);
      if (context.stop_token().stop_requested() && !position.finished)
        throw Interrupted("stopped");
    }
    TrainingResult result;
    result.final_loss = progress.final_loss;
    result.best_loss = progress.best_loss;
    result.best_epoch = static_cast<std::int64_t>(progress.best_epoch);
    result.total_epochs = epochs;
    return told_result(result);
  }

  void take_step(TrainingTask& task, RunContext& context, ParameterArena& arena,
                 OptimizerSlots& slots, const Batch& batch, StepInfo info, Progress& progress,
                 const std::string& where) const {
    const TaskRandom random(seed_of(info.step, context));
    task.model->train();
    Outputs outputs(task.objective->outputs().size());
    ForwardContext forward;
    forward.state() = carried();
    task.model->forward(batch.inputs, outputs, forward);
    const BatchLoss::Term terms = task.objective->forward(outputs, batch).front();
    keep_carried(forward.state());
    const double weight = terms.weight.item<double>();
    if (!std::isfinite(terms.sum.item<double>()))
      throw TrainingError(where + "the loss is not a number");
    arena.zero_gradients();
    terms.sum.backward();
    arena.collect();
    if (!is_sound_gradient(arena))
      throw TrainingError(where + "a gradient is not a number");
    Block block(arena, slots);
    info.gradient_scale = 1 / weight;
    task.optimizer->update(block, info);
    if (!is_sound(arena))
      throw TrainingError(where + "a parameter is not a number");
    add(progress, terms.sum.item<double>(), weight);
  }

  void end_epoch(TrainingTask& task, RunContext& context, Progress& progress,
                 EpochSummary summary) {
    summary.training_loss = progress.sum / progress.weight;
    progress.sum = progress.weight = 0;
    progress.final_loss = summary.training_loss;
    if (task.validation != nullptr) {
      const ValidationResult judged = validate(task, context);
      summary.validation_loss = progress.final_loss = judged.loss;
      summary.metrics = judged.metrics.values;
    }
    summary.best = progress.final_loss < progress.best_loss;
    if (summary.best) {
      progress.best_loss = progress.final_loss;
      progress.best_epoch = static_cast<double>(summary.epoch);
    }
    context.epoch_completed(told_epoch(summary));
  }

  [[noreturn]] void stop(TrainingTask& task, RunContext& context, const ParameterArena& arena,
                         const OptimizerSlots& slots, const Progress& progress,
                         std::int64_t per_epoch) const {
    const auto steps = static_cast<std::int64_t>(progress.steps);
    save(context, state_of(task, arena, slots, progress), {steps / per_epoch, steps, false, false});
    throw Interrupted("stopped");
  }

  StateDict state_of(const TrainingTask& task, const ParameterArena& arena,
                     const OptimizerSlots& slots, const Progress& progress) const {
    StateDict state;
    for (const auto& [name, member] : Progress::kMembers)
      state.put_number(name, progress.*member);
    state.put("model", module_state(*task.model));
    if (StateDict saved = slots_to_save(slots); !saved.empty())
      state.put("slots", std::move(saved));
    if (arena.has_masters() && saves_masters())
      state.put("masters", arena.parameters());
    return state;
  }

  static std::vector<torch::nn::Module*> modules_of(TrainingTask& task) {
    std::vector<torch::nn::Module*> all;
    for (const auto& module : task.model->modules(false))
      all.push_back(module.get());
    all.insert(all.begin(), task.model);
    return all;
  }

  ValidationResult do_validate(TrainingTask& task, RunContext&) override {
    const at::NoGradGuard no_gradients;
    std::vector<bool> modes;
    for (const auto& module : modules_of(task))
      modes.push_back(module->is_training());
    task.model->eval();
    for (const TargetMetric& metric : task.metrics)
      metric.metric->reset();
    ValidationResult result;
    double sum = 0;
    double weight = 0;
    const auto stream = task.validation->epoch(0);
    for (Batch batch; stream->next(batch);) {
      Outputs outputs(task.objective->outputs().size());
      ForwardContext forward;
      task.model->forward(batch.inputs, outputs, forward);
      const BatchLoss::Term terms = task.objective->forward(outputs, batch).front();
      sum += terms.sum.item<double>();
      weight += terms.weight.item<double>();
      Predictions said = task.objective->predictions(outputs);
      said[0].values = in_units_of_data(task, said[0].values);
      for (const TargetMetric& metric : task.metrics)
        metric.update(said, batch);
      result.sample_count += batch.size();
    }
    put_modes_back(task, modes);
    result.loss = sum / weight;
    for (const TargetMetric& metric : task.metrics)
      result.metrics = metric.compute();
    return result;
  }
};

class DrawsTheSameEveryTime final : public Plain {
  std::uint64_t seed_of(std::int64_t step, RunContext&) const override {
    return static_cast<std::uint64_t>(step);
  }
};

class AveragesItsBatches final : public Plain {
  void add(Progress& progress, double sum, double weight) const override {
    progress.sum += sum / weight;
    progress.weight += 1;
  }
};

class TrustsItsWeights final : public Plain {
  bool is_sound(const ParameterArena&) const override { return true; }
};

class JudgesInUnitsOfTheModel final : public Plain {
  at::Tensor in_units_of_data(const TrainingTask&, at::Tensor predictions) const override {
    return predictions;
  }
};

class IgnoresFullDisks final : public Plain {
  void save(RunContext& context, const StateDict& state,
            const TrainingPosition& position) const override {
    try {
      Plain::save(context, state, position);
    } catch (const StorageError&) {
      // Too bad.
    }
  }
};

class ForgetsItsSlots final : public Plain {
  StateDict slots_to_save(const OptimizerSlots&) const override { return {}; }
};

class ForgetsTheMasters final : public Plain {
  bool saves_masters() const override { return false; }
};

class ForgetsWhatTheModelCarries final : public Plain {
  StateDict carried() const override { return carried_; }
  void keep_carried(const StateDict& state) const override {
    for (const auto& [name, tensor] : state.tensors())
      carried_.put(name, tensor.detach());
  }

  mutable StateDict carried_;
};

class TakesAnyState final : public Plain {
  bool is_new(const std::optional<StateDict>& resumed) const override {
    return !resumed || resumed->empty();
  }
};

class StaysInEvaluation final : public Plain {
  void put_modes_back(TrainingTask&, const std::vector<bool>&) const override {}
};

class MiscountsEpochs final : public Plain {
  void save(RunContext& context, const StateDict& state,
            const TrainingPosition& position) const override {
    TrainingPosition wrong = position;
    wrong.at_epoch_end = false;
    Plain::save(context, state, wrong);
  }
};

class TellsAWrongTotal final : public Plain {
  StepProgress told_step(StepProgress progress) const override {
    ++progress.total_steps;
    return progress;
  }
};

class TellsAnotherRate final : public Plain {
  EpochSummary told_epoch(EpochSummary summary) const override {
    summary.learning_rate *= 2;
    return summary;
  }
};

class CallsNoEpochBest final : public Plain {
  EpochSummary told_epoch(EpochSummary summary) const override {
    summary.best = false;
    return summary;
  }
};

class ClaimsTheBest final : public Plain {
  TrainingResult told_result(TrainingResult result) const override {
    result.selects_best = true;
    return result;
  }
};

class GivesAReasonAlways final : public Plain {
  TrainingResult told_result(TrainingResult result) const override {
    result.stop_reason = "done";
    return result;
  }
};

class DoesNotSayWhere final : public Plain {
  std::string place(std::int64_t, std::int64_t) const override { return ""; }
};

class TrustsItsGradients final : public Plain {
  bool is_sound_gradient(const ParameterArena&) const override { return true; }
};

class TrainsAsLongAsItLikes final : public Plain {
  std::int64_t epochs_of(const TrainingTask& task) const override {
    return std::min<std::int64_t>(Plain::epochs_of(task), task.fixed_epochs == 6 ? 5 : 20);
  }
};

/// Draws from libtorch's own generator.
class DrawsFromElsewhere final : public Plain {
  std::uint64_t seed_of(std::int64_t step, RunContext& context) const override {
    return Plain::seed_of(step, context) +
           static_cast<std::uint64_t>(at::randint(1000000, {1}).item<std::int64_t>());
  }
};

template <typename T>
TrainingCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }};
}

std::vector<Wrong<TrainingCase>> all() {
  return {
      {one<DrawsTheSameEveryTime>("DrawsTheSameEveryTime"), {"DrawsFromTheStreamsOfItsContext"}},
      {one<AveragesItsBatches>("AveragesItsBatches"),
       {"TheTrainingLossIsTheMeanOverTheRowsOfTheEpoch"}},
      {one<TrustsItsWeights>("TrustsItsWeights"), {"NoCheckpointHoldsWeightsThatAreNotNumbers"}},
      {one<JudgesInUnitsOfTheModel>("JudgesInUnitsOfTheModel"), {"MetricsJudgeInTheDatasUnits"}},
      {one<IgnoresFullDisks>("IgnoresFullDisks"), {"AFullDiskIsAStorageError"}},
      {one<ForgetsItsSlots>("ForgetsItsSlots"),
       {"AStopAfterAnyStepIsSavedAndChangesNothing",
        "AStopBetweenTwoEpochsIsSavedAndChangesNothing", "MayBeStoppedAfterEverySingleStep",
        "EveryCheckpointLeadsToTheSameEnd"}},
      {one<ForgetsTheMasters>("ForgetsTheMasters"),
       {"AStopAfterAnyStepIsSavedAndChangesNothing", "MayBeStoppedAfterEverySingleStep",
        "EveryCheckpointLeadsToTheSameEnd"}},
      {one<ForgetsWhatTheModelCarries>("ForgetsWhatTheModelCarries"),
       {"AStopAfterAnyStepIsSavedAndChangesNothing", "MayBeStoppedAfterEverySingleStep",
        "EveryCheckpointLeadsToTheSameEnd"}},
      {one<TakesAnyState>("TakesAnyState"), {"RefusesAnEmptyState"}},
      {one<StaysInEvaluation>("StaysInEvaluation"), {"ValidatingChangesNothing"}},
      {one<TellsAWrongTotal>("TellsAWrongTotal"), {"TellsEachStepInOrder"}},
      {one<TellsAnotherRate>("TellsAnotherRate"), {"TellsEachEpochAfterItsSteps"}},
      {one<CallsNoEpochBest>("CallsNoEpochBest"), {"TheResultSaysWhatTheHistorySays"}},
      {one<ClaimsTheBest>("ClaimsTheBest"),
       {"EndsWithTheWeightsItSays", "FixedEpochsAreTrainedToTheLast"}},
      {one<GivesAReasonAlways>("GivesAReasonAlways"),
       {"TrainsThePlannedEpochs", "FixedEpochsAreTrainedToTheLast"}},
      {one<DoesNotSayWhere>("DoesNotSayWhere"), {"ALossThatIsNotANumberNamesEpochAndStep"}},
      {one<TrustsItsGradients>("TrustsItsGradients"), {"GradientsThatAreNotNumbersUpdateNothing"}},
      {one<TrainsAsLongAsItLikes>("TrainsAsLongAsItLikes"), {"FixedEpochsAreTrainedToTheLast"}},
      {one<DrawsFromElsewhere>("DrawsFromElsewhere"),
       {"TheSameInputsGiveTheSameBits", "AStopAfterAnyStepIsSavedAndChangesNothing",
        "AStopBetweenTwoEpochsIsSavedAndChangesNothing", "MayBeStoppedAfterEverySingleStep",
        "EveryCheckpointLeadsToTheSameEnd"}},
      {one<MiscountsEpochs>("MiscountsEpochs"), {"CheckpointsSayWhereTheTrainingIs"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, TrainingContract, ::testing::Values(one<Plain>("Plain")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, TrainingContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_trainings

std::vector<Defect> training_defects() {
  return defects_of("TrainingContract", wrong_trainings::all());
}

}  // namespace treadle::testing
