#include <treadle/engine/session.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/weights.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/engine/evaluation.h>

#include "session/callback_host.h"
#include "session/checkpoints.h"
#include "session/epoch_numbers.h"
#include "session/loop_rows.h"
#include "step/step_marks.h"

namespace treadle::engine {

RunContext::~RunContext() = default;
void RunContext::do_note_once(const std::string&, const std::string& text) {
  do_note(text);
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// On a device: how soon a training that has diverged is noticed. No bit depends on it.
constexpr std::int64_t kStepsBetweenReads = 64;

StepOptions step_options(const SessionSetup& setup, const LoopNeeds& needs) {
  return {setup.clipping, setup.gradients, setup.replicas, setup.groups, setup.timeline,
          setup.path,     setup.precision, setup.capture,  setup.group,  needs.losses};
}

/// One training, as its loop sees it. What belongs to the whole of it is in the parts; a step and
/// the end of an epoch are put together here.
///
/// An epoch is: steps → the average put in → validation → callbacks → the average taken out → row
/// of history → checkpoint.
class Session final : public TrainingSession {
 public:
  Session(TrainingWorkflow& loop, const SessionSetup& setup, RunContext& context)
      : loop_(loop),
        setup_(setup),
        context_(context),
        needs_(loop.needs()),
        progress_({setup.epochs, setup.max_steps, setup.training->batches_per_epoch()}),
        step_(*setup.model, *setup.objective, *setup.optimizer, step_options(setup, needs_)),
        rows_(setup, device()),
        rates_(setup, progress_),
        evaluation_(setup, context),
        weights_(step_, setup, context),
        numbers_(parts(), evaluation_, rates_),
        callbacks_(parts(), numbers_, weights_, rates_),
        epoch_(parts(), rates_, callbacks_),
        checkpoints_(parts(), rates_.span(), [this] { return state(); }),
        marks_(setup.backend, device(), setup.timeline) {}

  TrainingResult train() {
    callbacks_.begin();
    numbers_.note_undefined();
    if (needs_.updates)
      expect_something_to_train();
    if (const std::optional<StateDict> saved = context_.resume_state()) {
      load(*saved);
    } else {
      weights_.add_first_weights();
    }
    setup_.model->train();
    loop_.train(*this);
    checkpoints_.save_finished_epoch();
    weights_.choose(progress_.epochs_done(), numbers_.is_noted(weights_.chosen_by()));
    setup_.model->eval();
    TrainingResult result;
    weights_.describe(result);
    result.total_epochs = progress_.epochs_done();
    result.training_time_seconds = progress_.seconds();
    result.stop_reason = progress_.stop_reason();
    epoch_.describe(result);
    return result;
  }

  bool is_finished() const override { return progress_.is_finished(); }
  std::int64_t epochs_done() const override { return progress_.epochs_done(); }
  std::int64_t steps_done() const override { return progress_.steps_done(); }
  std::optional<std::int64_t> epochs() const override { return setup_.epochs; }
  std::optional<std::int64_t> steps_per_epoch() const override {
    return progress_.limits().batches_per_epoch;
  }
  double scheduled_rate() const override {
    if (progress_.is_last_of_epoch())
      return rates_.last();  // no step will have it
    return rates_.scheduled(progress_.steps_done());
  }
  const GroupNames* group_names() const override { return setup_.group_names; }
  Model& model() override { return *setup_.model; }
  const Objective& objective() const override { return *setup_.objective; }
  const Precision& precision() const override { return setup_.precision; }
  std::stop_token stop_token() const override { return context_.stop_token(); }
  const RandomStreams& random() const override { return context_.random(); }
  void stop(const std::string& reason) override { callbacks_.end_training(reason); }

  ParameterSet parameters(const std::function<bool(std::string_view name)>& contains) override {
    ParameterSet set;
    for (const Segment& segment : step_.arena().segments())
      set.members.push_back(contains(segment.name));
    return set;
  }

  bool next_epoch() override {
    checkpoints_.save_finished_epoch();
    epoch_start_ = Clock::now();
    return !is_finished();
  }

  std::optional<Batch> next_batch() override {
    if (!may_begin_step())
      return std::nullopt;
    steps_.reset();
    if (!stream_)
      stream_ = setup_.training->epoch(progress_.epochs_done(), progress_.batches_done());
    Batch batch;
    if (!stream_->next(batch))
      return std::nullopt;
    within_step_ = true;
    return on_device(std::move(batch));
  }

  Batch next_batch(std::string_view part) override { return rows_.next(part); }
  std::unique_ptr<BatchStream> read(std::string_view rows) override { return rows_.read(rows); }

  void update(const Batch& batch, const Update& update) override { update_on(batch, update); }

  bool step(double learning_rate) override {
    if (setup_.shards == nullptr) {
      std::optional<Batch> batch = next_batch();
      if (!batch)
        return false;
      update_on(*std::move(batch), {.learning_rate = learning_rate});
    } else {
      const std::optional<StepRows> rows = next_rows();
      if (!rows)
        return false;
      update_on(*rows, {.learning_rate = learning_rate});
    }  // its memory is needed for a batch to come
    end_step();
    return true;
  }

  Evaluation evaluate(std::string_view rows) override {
    try {
      const auto stream = rows_.to_evaluate(rows);
      return evaluation_.loss_over(*stream);
    } catch (const Interrupted&) {
      checkpoints_.interrupt(within_step_);
    }
  }

  void evaluate(const Batch& batch) override {
    TREADLE_EXPECTS(setup_.validation == nullptr,
                    "batches are evaluated in trainings without validation rows");
    // What the training would end with, as for validation rows.
    const auto averaged = weights_.average_in_model();
    evaluation_.add(batch);
  }

  EpochSummary finish_epoch(const std::optional<Number>& train_loss) override {
    end_step();
    TREADLE_EXPECTS(progress_.batches_done() > 0 || !needs_.updates,
                    "an epoch ends after at least one step");
    checkpoints_.expect_uninterrupted();
    epoch_.note_uncaptured();
    stream_.reset();
    steps_.reset();
    checkpoints_.expect_no_divergence();
    marks_.end_epoch();
    EpochSummary summary = epoch_.row(train_loss);
    {
      // What is evaluated, and kept when it is the best, is what the training would end with.
      std::unique_ptr<AverageInModel> averaged;
      try {
        if (setup_.validation != nullptr && is_evaluation_due()) {
          averaged = weights_.average_in_model(progress_.epochs_done());
          evaluation_.evaluate(*setup_.validation, 0, summary);
        }
      } catch (const Interrupted&) {
        averaged.reset();
        checkpoints_.interrupt(false);
      }
      evaluation_.take(summary);
      epoch_.note_skipped();
      step_.clear_totals();
      progress_.end_epoch();
      callbacks_.after_epoch(summary);
    }
    summary.best = weights_.is_best(summary);
    summary.decisions = callbacks_.take_decisions();
    summary.seconds = seconds_since(epoch_start_);
    context_.epoch_completed(summary);
    checkpoints_.after_epoch();
    return summary;
  }

 private:
  SessionParts parts() { return {setup_, context_, needs_, step_, progress_}; }
  c10::Device device() const { return step_.device(); }
  Batch on_device(Batch batch) const {
    return device().is_cpu() ? std::move(batch) : sent(batch, device(), setup_.timeline);
  }

  /// Whether there may be a batch. A callback may have ended the epoch; all its batches may be
  /// behind it: a training can be stopped while it is evaluated.
  bool may_begin_step() {
    end_step();
    checkpoints_.save_finished_epoch();
    TREADLE_EXPECTS(!is_finished(), "the training is finished; look at next_epoch() first");
    if (progress_.is_last_of_epoch())
      return false;
    if (progress_.batches_done() == 0)
      step_.set_model_state({});
    return true;
  }

  /// The rows of the next step that are this process's own; nothing at the end of the epoch. The
  /// others hear in the step of rows that cannot be had.
  std::optional<StepRows> next_rows() {
    if (!may_begin_step())
      return std::nullopt;
    StepRows rows;
    try {
      stream_.reset();
      if (!steps_) {
        const ShardRange own = setup_.group != nullptr ? setup_.group->own()
                                                       : ShardRange{0, setup_.replicas.size() + 1};
        steps_ = setup_.shards->steps(progress_.epochs_done(), progress_.batches_done(), own);
      }
      if (!steps_->next(rows))
        return std::nullopt;
      for (Batch& shard : rows.shards)
        shard = on_device(std::move(shard));
    } catch (...) {
      if (setup_.group == nullptr)
        throw;
      rows = {0, {}, std::current_exception()};
    }
    within_step_ = true;
    return rows;
  }

  /// `rows`: a Batch or StepRows.
  template <typename Rows>
  void update_on(Rows&& rows, const Update& update) {
    TREADLE_EXPECTS(within_step_, "an update is part of a step: see next_batch()");
    const bool is_own = update.name.empty();
    TREADLE_EXPECTS(!is_own || !has_own_update_, "a step has one update without a name");
    if (!has_update_)
      marks_.begin_step();
    has_update_ = true;
    has_own_update_ = has_own_update_ || is_own;
    rates_.set_last(update.learning_rate);
    const std::int64_t steps = progress_.steps_done();
    const std::string name(is_own ? "model" : update.name);
    const std::int64_t before = is_own ? steps : updates_[name]++;
    const std::uint64_t seed = random().seed(name, {static_cast<std::uint64_t>(before)});
    if (setup_.group != nullptr)
      setup_.group->wish(checkpoints_.wishes_behind(steps + 1));
    step_.run(std::forward<Rows>(rows), before + 1, update.learning_rate, seed,
              rates_.of_groups(steps, update.learning_rate),
              {update.loss ? &update.loss : nullptr, update.name,
               update.parameters != nullptr ? &update.parameters->members : nullptr, is_own});
    if (!is_own && step_.is_read_at_once())
      checkpoints_.expect_no_divergence();
  }

  void end_step() {
    if (!std::exchange(within_step_, false))
      return;
    progress_.end_step();
    const std::int64_t steps = progress_.steps_done();
    if (std::exchange(has_update_, false)) {
      if (!std::exchange(has_own_update_, false))
        step_.average_after(steps);
      marks_.end_step();
      if (step_.is_read_at_once() || steps % kStepsBetweenReads == 0)
        checkpoints_.expect_no_divergence();
      if (steps % kStepsBetweenReads == 0)
        marks_.read();
      callbacks_.after_step();
    }
    context_.step_completed(
        {progress_.epochs_done() + 1, setup_.epochs, steps, progress_.total_steps()});
    checkpoints_.after_step();
  }

  bool is_evaluation_due() const {
    const std::int64_t epoch = progress_.epochs_done() + 1;
    return epoch == setup_.epochs || progress_.has_all_steps() ||
           epoch % setup_.evaluate_every == 0 || !progress_.stop_reason().empty();
  }

  void expect_something_to_train() const {
    const std::vector<at::Tensor> parameters = setup_.model->parameters();
    if (std::any_of(parameters.begin(), parameters.end(),
                    [](const at::Tensor& parameter) { return parameter.requires_grad(); }))
      return;
    throw TrainingError(parameters.empty()
                            ? "the model has no parameters, so there is nothing to train"
                            : "all parameters of the model are frozen, so there is nothing to "
                              "train; freeze fewer of them");
  }

  StateDict state() {
    StateDict state;
    state.put("model", module_state(*setup_.model));
    state.put("optimizer", step_.slots().state());
    if (const StateDict model_state = step_.model_state(); !model_state.empty())
      state.put("model_state", model_state);
    if (!updates_.empty())
      state.put("updates", nlohmann::json(updates_));
    progress_.save_in(state);
    epoch_.save_in(state);
    rows_.save_in(state);
    rates_.save_in(state);
    evaluation_.save_in(state);
    weights_.save_in(state);
    callbacks_.save_in(state);
    if (const StateDict data =
            setup_.training->state(progress_.epochs_done(), progress_.batches_done());
        !data.empty())
      state.put("data", data);
    if (const StateDict loop = loop_.state(); !loop.empty())
      state.put("loop", loop);
    return state;
  }

  void load(const StateDict& saved) {
    for (const char* const part : {"model", "optimizer"})
      count_sent(saved.part(part), device(), setup_.timeline);
    load_module_state(*setup_.model, saved.part("model"));
    step_.slots().load_state(saved.part("optimizer"));
    if (saved.has_part("model_state"))
      step_.set_model_state(saved.part("model_state"));
    if (saved.has_value("updates"))
      updates_ = saved.value("updates").get<std::map<std::string, std::int64_t>>();
    progress_.load_from(saved);
    epoch_.load_from(saved);
    rows_.load_from(saved);
    rates_.load_from(saved);
    evaluation_.load_from(saved);
    weights_.load_from(saved);
    callbacks_.load_from(saved);
    if (saved.has_part("data"))
      setup_.training->load_state(saved.part("data"));
    loop_.load_state(saved.has_part("loop") ? saved.part("loop") : StateDict());
    checkpoints_.resumed();
  }

  TrainingWorkflow& loop_;
  const SessionSetup& setup_;
  RunContext& context_;
  const LoopNeeds needs_;
  Progress progress_;
  TrainingStep step_;
  LoopRows rows_;
  Rates rates_;
  EpochEvaluation evaluation_;
  WeightChoice weights_;
  HistoryNumbers numbers_;
  CallbackHost callbacks_;
  EpochNumbers epoch_;
  Checkpoints checkpoints_;
  StepMarks marks_;

  // Of the epoch, as the loop takes it; null before its first step here.
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<StepStream> steps_;
  Clock::time_point epoch_start_ = Clock::now();
  std::map<std::string, std::int64_t> updates_;  // made, by name
  bool within_step_ = false;
  bool has_update_ = false;      // of the step
  bool has_own_update_ = false;  // one without a name
};

}  // namespace

TrainingResult train(TrainingWorkflow& loop, const SessionSetup& setup, RunContext& context) {
  TREADLE_EXPECTS(setup.model != nullptr && setup.objective != nullptr &&
                      setup.optimizer != nullptr && setup.schedule != nullptr &&
                      setup.training != nullptr,
                  "a training needs a model, an objective, an optimizer, a schedule and rows");
  return Session(loop, setup, context).train();
}

ValidationResult validate(const SessionSetup& setup, std::stop_token stop) {
  TREADLE_EXPECTS(setup.validation != nullptr, "validate() needs validation rows");
  const auto start = Clock::now();
  EvaluationSetup evaluation = evaluation_setup(setup);
  const auto stream = rows_to_evaluate(*setup.validation, evaluation);
  // Processes that train together stop at a step.
  const Evaluation totals =
      evaluate_metrics(evaluation, *stream,
                       setup.group != nullptr ? std::stop_token() : std::move(stop), setup.metrics);
  ValidationResult result;
  result.loss = totals.loss;
  result.sample_count = totals.rows;
  for (const TargetMetric& metric : setup.metrics) {
    const MetricResult part = metric.compute();
    result.metrics.values.insert(result.metrics.values.end(), part.values.begin(),
                                 part.values.end());
    result.metrics.tables.insert(result.metrics.tables.end(), part.tables.begin(),
                                 part.tables.end());
  }
  result.validation_time_seconds = seconds_since(start);
  return result;
}

}  // namespace treadle::engine
