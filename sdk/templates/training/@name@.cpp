#include <treadle/sdk.h>

#include <chrono>
#include <cmath>
#include <limits>

#include <treadle/engine/evaluation.h>
#include <treadle/engine/training_step.h>

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

treadle::engine::EvaluationSetup evaluation_of(const treadle::TrainingTask& task) {
  return {task.model, task.objective, task.transforms, task.timeline};
}

/// One training, from its first step or its last checkpoint to its end. What it must remember over
/// a crash is in state(); the same inputs and the same state give the same bits.
class @Name@Run {
 public:
  @Name@Run(std::int64_t epochs, treadle::TrainingTask& task, treadle::RunContext& context)
      : task_(task),
        context_(context),
        step_(*task.model, *task.objective, *task.optimizer,
              {{}, nullptr, task.replicas, task.groups, task.timeline}),
        per_epoch_(task.training->batches_per_epoch()),
        epochs_(task.fixed_epochs > 0 ? task.fixed_epochs : epochs),
        span_{task.optimizer->learning_rate(), epochs_ * per_epoch_, per_epoch_} {}

  treadle::TrainingResult run() {
    if (const auto saved = context_.resume_state())
      load(*saved);
    task_.model->train();
    while (epoch_ < epochs_)
      run_epoch();
    task_.model->eval();
    treadle::TrainingResult result;
    result.final_loss = last_loss_;
    result.best_loss = best_loss_;
    result.best_epoch = best_epoch_;
    result.total_epochs = epoch_;
    result.training_time_seconds = earlier_seconds_ + seconds_since(start_);
    return result;
  }

 private:
  void run_epoch() {
    const auto start = std::chrono::steady_clock::now();
    // After a resume the epoch goes on with the batch that is next.
    const std::int64_t behind = steps_ % per_epoch_;
    if (behind == 0)
      step_.set_model_state({});
    const auto stream = task_.training->epoch(epoch_, behind);
    double rate = span_.base_rate;
    for (treadle::Batch batch; stream->next(batch); batch = treadle::Batch()) {
      rate = task_.schedule->rate_at(steps_, span_);
      const std::uint64_t seed =
          context_.random().seed("model", {static_cast<std::uint64_t>(steps_)});
      const bool finite = step_.run(batch, steps_ + 1, rate, seed);
      ++steps_;
      if (!finite)
        report_divergence();
      context_.step_completed({epoch_ + 1, epochs_, steps_, span_.total_steps});
      if (steps_ % per_epoch_ != 0 && context_.stop_token().stop_requested())
        save(false);
    }
    finish_epoch(rate, seconds_since(start));
    save(true);
  }

  void finish_epoch(double rate, double seconds) {
    treadle::EpochSummary summary;
    summary.epoch = ++epoch_;
    summary.epochs = epochs_;
    summary.step = steps_;
    summary.learning_rate = rate;
    summary.training_loss = step_.totals().value();
    summary.observed = step_.logged_means();
    summary.seconds = seconds;
    step_.clear_totals();
    if (task_.validation != nullptr) {
      const auto stream = task_.validation->epoch(0);
      summary.validation_loss = treadle::engine::evaluate_metrics(evaluation_of(task_), *stream,
                                                                  std::stop_token(), task_.metrics)
                                    .loss;
      for (const treadle::TargetMetric& metric : task_.metrics) {
        const treadle::MetricResult result = metric.compute();
        summary.metrics.insert(summary.metrics.end(), result.values.begin(), result.values.end());
      }
    }
    last_loss_ = summary.validation_loss.value_or(summary.training_loss);
    summary.best = best_epoch_ == 0 || last_loss_ < best_loss_;
    if (summary.best) {
      best_loss_ = last_loss_;
      best_epoch_ = epoch_;
    }
    context_.epoch_completed(summary);
  }

  /// Saves what a resumed training needs; ends this one when a stop is asked for.
  void save(bool at_epoch_end) {
    constexpr int kKeep = 2;  // checkpoints
    const bool finished = epoch_ == epochs_;
    // A gradient can overflow although the loss did not: no checkpoint must hold such weights.
    if (!std::isfinite(step_.arena().parameters().sum().item<double>()))
      report_divergence();
    context_.save_checkpoint(state(), {epoch_, steps_, at_epoch_end, finished}, kKeep);
    if (!finished && context_.stop_token().stop_requested())
      throw treadle::Interrupted("stopped after step " + std::to_string(steps_));
  }

  [[noreturn]] void report_divergence() const {
    const std::string checkpoint = context_.last_checkpoint();
    throw treadle::TrainingError("the loss or its gradient is no longer a number in epoch " +
                                 std::to_string((steps_ - 1) / per_epoch_ + 1) + ", step " +
                                 std::to_string(steps_) + " (" + context_.trial().name + "); " +
                                 (checkpoint.empty()
                                      ? "there is no checkpoint yet"
                                      : "the last good checkpoint is " + checkpoint) +
                                 "; try a lower optimizer.learning_rate");
  }

  treadle::StateDict state() {
    treadle::StateDict state;
    state.put("model", treadle::module_state(*task_.model));
    state.put("optimizer", step_.slots().state());
    state.put("model_state", step_.model_state());
    state.put("sums", step_.sums());
    state.put("epoch", nlohmann::json(epoch_));
    state.put("steps", nlohmann::json(steps_));
    state.put("best_epoch", nlohmann::json(best_epoch_));
    state.put_number("last_loss", last_loss_);
    state.put_number("best_loss", best_loss_);
    state.put_number("seconds", earlier_seconds_ + seconds_since(start_));
    return state;
  }

  void load(const treadle::StateDict& state) {
    treadle::load_module_state(*task_.model, state.part("model"));
    step_.slots().load_state(state.part("optimizer"));
    step_.set_model_state(state.part("model_state"));
    step_.set_sums(state.part("sums"));
    epoch_ = state.value("epoch").get<std::int64_t>();
    steps_ = state.value("steps").get<std::int64_t>();
    best_epoch_ = state.value("best_epoch").get<std::int64_t>();
    last_loss_ = state.number("last_loss");
    best_loss_ = state.number("best_loss");
    earlier_seconds_ = state.number("seconds");
  }

  treadle::TrainingTask& task_;
  treadle::RunContext& context_;
  treadle::engine::TrainingStep step_;
  const std::int64_t per_epoch_;  // steps
  const std::int64_t epochs_;
  const treadle::ScheduleSpan span_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  std::int64_t epoch_ = 0;  // epochs done
  std::int64_t steps_ = 0;  // steps done
  std::int64_t best_epoch_ = 0;
  double last_loss_ = 0;
  double best_loss_ = std::numeric_limits<double>::infinity();
  double earlier_seconds_ = 0;  // before the checkpoint this training continues from
};

/// A training loop to begin from: forward, backward and update are treadle::engine::TrainingStep's,
/// the order of things is here. One object per training; everything runs on the training thread.
class @Name@ final : public treadle::TrainingWorkflow {
 public:
  explicit @Name@(const treadle::Config& config) : epochs_(config.get<std::int64_t>("epochs")) {
    batches_.training_batch = config.get<std::int64_t>("batch_size");
  }

 private:
  treadle::BatchPlan do_batch_plan() const override { return batches_; }
  std::int64_t do_planned_epochs() const override { return epochs_; }

  treadle::TrainingResult do_train(treadle::TrainingTask& task,
                                   treadle::RunContext& context) override {
    return @Name@Run(epochs_, task, context).run();
  }

  treadle::ValidationResult do_validate(treadle::TrainingTask& task,
                                        treadle::RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    const auto stream = task.validation->epoch(0);
    const treadle::engine::EvaluationTotals totals = treadle::engine::evaluate_metrics(
        evaluation_of(task), *stream, context.stop_token(), task.metrics);
    treadle::ValidationResult result;
    result.loss = totals.loss;
    result.sample_count = totals.rows;
    for (const treadle::TargetMetric& metric : task.metrics) {
      const treadle::MetricResult part = metric.compute();
      auto& [values, tables] = result.metrics;
      values.insert(values.end(), part.values.begin(), part.values.end());
      tables.insert(tables.end(), part.tables.begin(), part.tables.end());
    }
    result.validation_time_seconds = seconds_since(start);
    return result;
  }

  treadle::BatchPlan batches_;
  std::int64_t epochs_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
