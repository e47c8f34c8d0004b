#include "standard_workflow.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <treadle/base/near_miss.h>
#include <treadle/core/module_state.h>
#include <treadle/core/plugin_registry.h>
#include <treadle/engine/batch_norm_refresh.h>
#include <treadle/engine/evaluation.h>

#include "freezing.h"

namespace treadle {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

engine::EvaluationSetup evaluation_setup(const TrainingTask& task) {
  return {task.model, task.objective, task.transforms, task.timeline};
}

constexpr const char* kLoss = "loss";

/// The metrics that the validation gives: the names are known once something was judged; the last
/// batch is as good as any.
std::vector<std::string> metric_names(const TrainingTask& task) {
  std::vector<std::string> names;
  const auto stream = task.validation->epoch(0, task.validation->batches_per_epoch() - 1);
  engine::evaluate_metrics(evaluation_setup(task), *stream, std::stop_token(), task.metrics);
  for (const TargetMetric& metric : task.metrics) {
    for (const MetricValue& value : metric.compute().values)
      names.push_back(value.name);
  }
  return names;
}

/// What the rows of history will have, by the names of treadle::find_value().
std::vector<std::string> known_trends(const TrainingTask& task) {
  std::vector<std::string> names{kLoss};
  if (task.validation != nullptr) {
    names.emplace_back("validation_loss");
    const std::vector<std::string> metrics = metric_names(task);
    names.insert(names.end(), metrics.begin(), metrics.end());
  }
  if (const auto* shows = dynamic_cast<const ShowsValues*>(task.model)) {
    const std::vector<std::string> observed = shows->observed_names();
    names.insert(names.end(), observed.begin(), observed.end());
  }
  return names;
}

/// The value of "loss" or of a metric, and which way is better. Expects one that
/// expect_watched_metrics() has seen.
MetricValue watched_value(const std::string& name, const EpochSummary& summary) {
  if (name == kLoss) {
    return {name, summary.validation_loss.value_or(summary.training_loss),
            Direction::kLowerIsBetter};
  }
  const auto found = std::find_if(summary.metrics.begin(), summary.metrics.end(),
                                  [&](const MetricValue& metric) { return metric.name == name; });
  if (found != summary.metrics.end())
    return *found;
  throw TrainingError("the validation gave \"" + name +
                      "\" at first and no longer does; a metric must give the same "
                      "names for any rows, watch another or mend its plugin");
}

/// Decides when enough has happened since the last checkpoint.
class CheckpointClock {
 public:
  CheckpointClock(Duration every, std::int64_t steps_per_epoch, std::int64_t total_steps)
      : every_(every) {
    if (every.unit != Duration::Unit::kSeconds) {
      steps_ = std::max<std::int64_t>(1, every.steps(steps_per_epoch, total_steps));
    }
  }

  bool due(std::int64_t step) const {
    if (steps_ > 0)
      return step - last_step_ >= steps_;
    return seconds_since(last_time_) >= every_.value;
  }
  void saved(std::int64_t step) {
    last_step_ = step;
    last_time_ = Clock::now();
  }

 private:
  Duration every_;
  std::int64_t steps_ = 0;
  std::int64_t last_step_ = 0;
  Clock::time_point last_time_ = Clock::now();
};

/// The average in place of the weights, for as long as one of these lives.
class AverageInModel {
 public:
  explicit AverageInModel(engine::WeightAverage& average) : average_(average) { average.put_in(); }
  ~AverageInModel() { average_.take_out(); }
  AverageInModel(const AverageInModel&) = delete;
  AverageInModel& operator=(const AverageInModel&) = delete;

 private:
  engine::WeightAverage& average_;
};

}  // namespace

StandardWorkflow::StandardWorkflow(const Config& config, const ComponentContext& context)
    : config_(config) {
  epochs_ = config.get<std::int64_t>("epochs");
  batches_.training_batch = config.get<std::int64_t>("batch_size");
  batches_.evaluation_batch = config.get<std::int64_t>("evaluation_batch_size");
  batches_.shuffle = config.get<bool>("shuffle");
  batches_.drop_last = config.get<bool>("drop_last");
  if (config.has("early_stopping")) {
    const Config stopping = config.child("early_stopping");
    stopping_ = Stopping{stopping.get<std::string>("metric"), stopping.get<Duration>("patience"),
                         stopping.get<double>("min_delta"), stopping.get<double>("alpha")};
    keep_best_ = stopping_->metric;
  }
  keep_best_ = config.get_or<std::string>("keep_best", keep_best_);
  if (config.has("clip")) {
    const Config clip = config.child("clip");
    clipping_ = {clip.get_or<double>("norm", 0), clip.get_or<double>("value", 0)};
  }
  gradients_ = make_nested<GradientStrategy>(context, config, "gradients");
  averaging_ = Averaging::configured_by(config);
  decisions_ = DecisionPlan::configured_by(config);
  const Config checkpoint = config.child("checkpoint");
  checkpoint_every_ = checkpoint.get<Duration>("every");
  keep_checkpoints_ = checkpoint.get<int>("keep");
}

/// One training from its first step, or its last checkpoint, to its end.
class StandardWorkflow::Training {
 public:
  Training(const StandardWorkflow& options, TrainingTask& task, RunContext& context)
      : options_(options),
        task_(task),
        context_(context),
        step_(*task.model, *task.objective, *task.optimizer,
              {options.clipping_, options.gradients_.get(), task.replicas, task.groups,
               task.timeline}),
        batches_per_epoch_(task.training->batches_per_epoch()),
        epochs_(task.fixed_epochs > 0 ? task.fixed_epochs : options.epochs_),
        span_{task.optimizer->learning_rate(), epochs_ * batches_per_epoch_, batches_per_epoch_},
        checkpoints_(options.checkpoint_every_, batches_per_epoch_, span_.total_steps),
        freezing_(*task.model, options.config_),
        decisions_(planned_decisions(options, task, context), batches_per_epoch_,
                   span_.total_steps) {
    const bool judged = task.fixed_epochs == 0 && task.validation != nullptr;
    if (judged)
      best_metric_ = options.keep_best_;
    watches_stop_ = judged && options.stopping_.has_value();
    freezing_.begin();
    if (options.averaging_) {
      const engine::AveragingPlan plan =
          options.averaging_->plan(batches_per_epoch_, span_.total_steps);
      average_ = std::make_unique<engine::WeightAverage>(step_.arena(), *task.model, plan);
      refreshes_ = !plan.decay && engine::has_batch_norm(*task.model);
    }
  }

  TrainingResult run() {
    if (const std::optional<StateDict> saved = context_.resume_state()) {
      load(*saved);
    } else if (average_) {
      average_->add_after(0);
    }
    const auto start = Clock::now();
    task_.model->train();
    while (epoch_ < epochs_ && stop_reason_.empty())
      run_epoch();
    choose_weights();
    task_.model->eval();
    TrainingResult result;
    result.final_loss = last_loss_;
    result.best_loss = best_loss_;
    result.best_epoch = best_epoch_;
    result.total_epochs = epoch_;
    result.training_time_seconds = earlier_seconds_ + seconds_since(start);
    result.selects_best = !best_metric_.empty();
    result.stop_reason = stop_reason_;
    return result;
  }

 private:
  /// A refit has no validation rows, and trains as long as it is told to.
  static DecisionPlan planned_decisions(const StandardWorkflow& options, const TrainingTask& task,
                                        RunContext& context) {
    if (task.fixed_epochs == 0)
      return options.decisions_;
    std::vector<std::string> left_out;
    DecisionPlan plan = options.decisions_.for_refit(known_trends(task), left_out);
    for (const std::string& decision : left_out) {
      context.note(context.trial().name + " has no validation rows, and goes without " + decision);
    }
    return plan;
  }

  void run_epoch() {
    const auto start = Clock::now();
    // All its batches may be behind it: a training can be stopped while it judges an epoch.
    const std::int64_t behind = step_count_ - epoch_ * batches_per_epoch_;
    if (behind == 0)
      step_.set_model_state({});
    const std::unique_ptr<BatchStream> stream = task_.training->epoch(epoch_, behind);
    Batch batch;
    std::optional<double> rate;
    while (stream->next(batch)) {
      rate = rate_at(step_count_);
      const std::uint64_t seed =
          context_.random().seed("model", {static_cast<std::uint64_t>(step_count_)});
      const bool finite = step_.run(batch, step_count_ + 1, *rate, seed);
      batch = Batch();  // its memory is needed for a batch to come
      ++step_count_;
      if (!finite)
        report_divergence();
      if (average_) {
        const Timeline::Span span(task_.timeline, Phase::kUpdate);
        average_->add_after(step_count_);
      }
      context_.step_completed({epoch_ + 1, epochs_, step_count_, span_.total_steps});
      if (step_count_ < (epoch_ + 1) * batches_per_epoch_)
        save_if_due(false);
    }
    if (!rate)
      rate = rate_at(step_count_ - 1);
    finish_epoch(*rate, seconds_since(start));
  }

  double rate_at(std::int64_t step) const {
    return task_.schedule->rate_at(step, span_) * decisions_.rate_factor();
  }

  void finish_epoch(double rate, double seconds) {
    EpochSummary summary;
    summary.epoch = epoch_ + 1;
    summary.epochs = epochs_;
    summary.step = step_count_;
    summary.learning_rate = rate;
    summary.training_loss = step_.totals().value();
    summary.observed = step_.logged_means();
    {
      // What is judged, and kept when it is the best, is what the training would end with.
      std::optional<AverageInModel> averaged;
      if (task_.validation != nullptr) {
        try {
          if (average_ && average_->count() > 0) {
            averaged.emplace(*average_);
            refresh_statistics(epoch_);
          }
          measure(summary);
        } catch (const Interrupted&) {
          averaged.reset();
          save({epoch_, step_count_, false, false});
          stop_here();
        }
      }
      step_.clear_totals();
      last_loss_ = summary.validation_loss.value_or(summary.training_loss);
      ++epoch_;
      summary.best = judge(summary);
    }
    decide(summary);
    summary.seconds = seconds;
    context_.epoch_completed(summary);
    save_if_due(true);
  }

  /// What the trends say is to be changed; nothing where the training ends anyway.
  void decide(EpochSummary& summary) {
    if (decisions_.plan().empty() || !stop_reason_.empty() || epoch_ == epochs_)
      return;
    const Decisions::Made made = decisions_.after(summary);
    if (made.unfrozen)
      freezing_.unfreeze(*made.unfrozen);
    stop_reason_ = made.stop_reason;
    for (const std::string& text : made.texts) {
      context_.note(context_.trial().name + ", epoch " + std::to_string(epoch_) + ": " + text);
    }
    summary.decisions = made.texts;
  }

  /// Judges the model on the validation rows. Throws Interrupted when a stop is requested.
  void measure(EpochSummary& summary) {
    const auto stream = task_.validation->epoch(0);
    const engine::EvaluationTotals totals = engine::evaluate_metrics(
        evaluation_setup(task_), *stream, context_.stop_token(), task_.metrics);
    summary.validation_loss = totals.loss;
    for (const TargetMetric& metric : task_.metrics) {
      const MetricResult result = metric.compute();
      summary.metrics.insert(summary.metrics.end(), result.values.begin(), result.values.end());
    }
  }

  /// For an average in the model: batch normalization's statistics from the training rows of
  /// `epoch`.
  void refresh_statistics(std::int64_t epoch) {
    if (!refreshes_)
      return;
    const auto stream = task_.training->epoch(epoch);
    const std::uint64_t seed =
        context_.random().seed("refresh", {static_cast<std::uint64_t>(epoch)});
    engine::refresh_batch_norm(*task_.model, task_.objective->outputs().size(), *stream, seed,
                               context_.stop_token());
  }

  /// After the last epoch: the best weights, the average, or the last.
  void choose_weights() {
    if (!best_metric_.empty() && !best_weights_.empty()) {
      load_module_state(*task_.model, best_weights_);
    } else if (average_ && average_->count() > 0) {
      average_->put_in();
      refresh_statistics(epoch_ - 1);
    } else if (average_) {
      context_.note(
          "the training ended before the averaging of its weights began; it ends with the last "
          "weights");
    }
  }

  /// Updates what is best and whether to stop; true when this epoch is the best so far.
  bool judge(const EpochSummary& summary) {
    if (watches_stop_) {
      const Stopping& options = *options_.stopping_;
      const MetricValue value = watched_value(options.metric, summary);
      if (!stopping_) {
        const std::int64_t steps = options.patience.steps(batches_per_epoch_, span_.total_steps);
        stopping_.emplace(EarlyStopping::Options{
            options.alpha, options.min_delta,
            static_cast<std::int64_t>(
                std::ceil(static_cast<double>(steps) / static_cast<double>(batches_per_epoch_))),
            value.direction});
        if (!saved_stopping_.empty())
          stopping_->load_state(saved_stopping_);
      }
      if (stopping_->step(value.value)) {
        stop_reason_ = stopping_->reason() + " (" + options.metric + ")";
      }
    }
    const MetricValue value = watched_value(best_metric_.empty() ? kLoss : best_metric_, summary);
    // Any number is better than none: a metric may have no meaning in the first epochs.
    const bool first = best_epoch_ == 0 || (std::isnan(best_value_) && !std::isnan(value.value));
    const bool better =
        first || (value.direction == Direction::kHigherIsBetter ? value.value > best_value_
                                                                : value.value < best_value_);
    if (!better)
      return false;
    best_value_ = value.value;
    best_loss_ = last_loss_;
    best_epoch_ = epoch_;
    if (!best_metric_.empty())
      best_weights_ = module_state(*task_.model).snapshot();
    return true;
  }

  void save_if_due(bool at_epoch_end) {
    const bool stopping = context_.stop_token().stop_requested();
    const bool finished = at_epoch_end && (epoch_ == epochs_ || !stop_reason_.empty());
    if (!stopping && !finished && !checkpoints_.due(step_count_))
      return;
    save({epoch_, step_count_, at_epoch_end, finished});
    if (stopping && !finished)
      stop_here();
  }

  void save(const TrainingPosition& position) {
    // A gradient can overflow although the loss did not: a checkpoint must never hold such weights.
    if (!std::isfinite(step_.arena().parameters().sum().item<double>()))
      report_divergence();
    context_.save_checkpoint(state(), position, options_.keep_checkpoints_);
    checkpoints_.saved(step_count_);
  }

  [[noreturn]] void stop_here() const {
    throw Interrupted("stopped after step " + std::to_string(step_count_) + " of epoch " +
                      std::to_string((step_count_ - 1) / batches_per_epoch_ + 1));
  }

  /// The last step is the one that went wrong.
  [[noreturn]] void report_divergence() {
    const std::string checkpoint = context_.last_checkpoint();
    throw TrainingError(
        "the loss or its gradient became NaN or infinite in epoch " +
        std::to_string((step_count_ - 1) / batches_per_epoch_ + 1) + ", step " +
        std::to_string(step_count_) + " (" + context_.trial().name + "); " +
        (checkpoint.empty() ? "there is no checkpoint yet"
                            : "the last good checkpoint is " + checkpoint) +
        "; try a lower optimizer.learning_rate, or bound the gradients with training.clip.norm");
  }

  StateDict state() const {
    StateDict state;
    state.put("model", module_state(*task_.model));
    state.put("optimizer", const_cast<Training*>(this)->step_.slots().state());
    if (const StateDict model_state = step_.model_state(); !model_state.empty())
      state.put("model_state", model_state);
    state.put("epoch", nlohmann::json(epoch_));
    state.put("step", nlohmann::json(step_count_));
    state.put("sums", step_.sums());
    if (!decisions_.plan().empty())
      state.put("decisions", decisions_.state());
    state.put_number("last_loss", last_loss_);
    state.put_number("best_value", best_value_);
    state.put_number("best_loss", best_loss_);
    state.put("best_epoch", nlohmann::json(best_epoch_));
    state.put("stop_reason", nlohmann::json(stop_reason_));
    state.put("seconds", nlohmann::json(earlier_seconds_ + seconds_since(started_)));
    if (!best_weights_.empty())
      state.put("best_model", best_weights_);
    if (average_)
      state.put("average", average_->state());
    // Until the first epoch's end after a resume, what was saved then is still true.
    const StateDict stopping = stopping_ ? stopping_->state() : saved_stopping_;
    if (!stopping.empty())
      state.put("early_stopping", stopping);
    return state;
  }

  void load(const StateDict& saved) {
    load_module_state(*task_.model, saved.part("model"));
    step_.slots().load_state(saved.part("optimizer"));
    if (saved.has_part("model_state"))
      step_.set_model_state(saved.part("model_state"));
    step_.set_sums(saved.part("sums"));
    if (!decisions_.plan().empty()) {
      decisions_.load_state(saved.part("decisions"));
      for (const std::size_t entry : decisions_.unfrozen())
        freezing_.unfreeze(entry);
    }
    epoch_ = saved.value("epoch").get<std::int64_t>();
    step_count_ = saved.value("step").get<std::int64_t>();
    last_loss_ = saved.number("last_loss");
    best_value_ = saved.number("best_value");
    best_loss_ = saved.number("best_loss");
    best_epoch_ = saved.value("best_epoch").get<std::int64_t>();
    stop_reason_ = saved.value("stop_reason").get<std::string>();
    earlier_seconds_ = saved.value("seconds").get<double>();
    if (saved.has_part("best_model"))
      best_weights_ = saved.part("best_model");
    if (average_)
      average_->load_state(saved.part("average"));
    if (saved.has_part("early_stopping"))
      saved_stopping_ = saved.part("early_stopping");
    checkpoints_.saved(step_count_);
  }

  const StandardWorkflow& options_;
  TrainingTask& task_;
  RunContext& context_;
  engine::TrainingStep step_;
  const std::int64_t batches_per_epoch_;
  const std::int64_t epochs_;
  const ScheduleSpan span_;
  CheckpointClock checkpoints_;
  Freezing freezing_;
  Decisions decisions_;
  std::string best_metric_;  // empty: the last weights are kept
  bool watches_stop_ = false;
  std::unique_ptr<engine::WeightAverage> average_;  // null: the weights are not averaged
  bool refreshes_ = false;                          // an average needs statistics of its own
  const Clock::time_point started_ = Clock::now();

  std::int64_t epoch_ = 0;       // epochs done
  std::int64_t step_count_ = 0;  // steps done
  double earlier_seconds_ = 0;   // before the checkpoint this training continues from
  double last_loss_ = 0;
  double best_value_ = 0;
  double best_loss_ = 0;
  std::int64_t best_epoch_ = 0;
  std::string stop_reason_;
  StateDict best_weights_;
  std::optional<EarlyStopping> stopping_;
  StateDict saved_stopping_;
};

void StandardWorkflow::expect_watched_metrics(const TrainingTask& task) const {
  std::vector<std::string> known = metric_names(task);
  known.insert(known.begin(), kLoss);
  const auto expect = [&](const Config& config, const char* key, const std::string& name) {
    if (std::find(known.begin(), known.end(), name) != known.end())
      return;
    std::string list;
    for (const std::string& one : known)
      list += (list.empty() ? "" : ", ") + one;
    config.fail(key, "there is no \"" + name + "\" among what the validation gives: " + list +
                         "; add it to \"metrics\", or name one of these");
  };
  if (stopping_)
    expect(config_.child("early_stopping"), "metric", stopping_->metric);
  if (!keep_best_.empty())
    expect(config_, "keep_best", keep_best_);
}

void StandardWorkflow::expect_known_trends(const TrainingTask& task) const {
  const std::vector<const Condition*> conditions = decisions_.conditions();
  const bool names_any =
      std::any_of(conditions.begin(), conditions.end(),
                  [](const Condition* condition) { return !condition->names().empty(); });
  if (!names_any)
    return;
  const std::vector<std::string> known = known_trends(task);
  for (const Condition* condition : conditions) {
    for (const std::string& name : condition->names()) {
      const auto count = std::count(known.begin(), known.end(), name);
      if (count == 1)
        continue;
      if (count > 1) {
        condition->config().fail("trend", "two numbers of the history are called \"" + name +
                                              "\"; give the model's tag another name");
      }
      std::string list;
      for (const std::string& one : known)
        list += (list.empty() ? "" : ", ") + one;
      condition->config().fail("trend", "there is no \"" + name +
                                            "\" in the history of this training, which has " +
                                            list + did_you_mean(name, known));
    }
  }
}

TrainingResult StandardWorkflow::do_train(TrainingTask& task, RunContext& context) {
  const bool judged = task.fixed_epochs == 0 && task.validation != nullptr;
  const auto is_metric = [](const std::string& name) { return !name.empty() && name != kLoss; };
  if (judged && (is_metric(keep_best_) || (stopping_ && is_metric(stopping_->metric)))) {
    expect_watched_metrics(task);
  }
  if (task.fixed_epochs == 0)
    expect_known_trends(task);
  return Training(*this, task, context).run();
}

ValidationResult StandardWorkflow::do_validate(TrainingTask& task, RunContext& context) {
  const auto start = Clock::now();
  const auto stream = task.validation->epoch(0);
  const engine::EvaluationTotals totals =
      engine::evaluate_metrics(evaluation_setup(task), *stream, context.stop_token(), task.metrics);
  ValidationResult result;
  result.loss = totals.loss;
  result.sample_count = totals.rows;
  for (const TargetMetric& metric : task.metrics) {
    const MetricResult part = metric.compute();
    result.metrics.values.insert(result.metrics.values.end(), part.values.begin(),
                                 part.values.end());
    result.metrics.tables.insert(result.metrics.tables.end(), part.tables.begin(),
                                 part.tables.end());
  }
  result.validation_time_seconds = seconds_since(start);
  return result;
}

}  // namespace treadle
