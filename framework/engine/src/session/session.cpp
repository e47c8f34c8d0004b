#include <treadle/engine/session.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include <c10/util/StringUtil.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/history/history.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/weights.h>
#include <treadle/core/training/solves_last_layer.h>
#include <treadle/core/training/structure_search.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/statistics_refresh.h>
#include <treadle/engine/weight_average.h>

#include "checkpoint_clock.h"
#include "last_layer.h"
#include "step/step_marks.h"
#include "structure_parts.h"

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

EvaluationSetup evaluation_setup(const SessionSetup& setup) {
  return {setup.model, setup.objective, setup.preparation, setup.timeline, setup.precision};
}

constexpr const char* kGradientNorm = "gradient_norm";
constexpr const char* kSkippedSteps = "skipped_steps";
constexpr const char* kLossScale = "loss_scale";

/// On a device: how soon a training that has diverged is noticed. No bit depends on it.
constexpr std::int64_t kStepsBetweenReads = 64;

/// The average in place of the weights, for as long as one of these lives.
class AverageInModel {
 public:
  explicit AverageInModel(WeightAverage& average) : average_(average) { average.put_in(); }
  ~AverageInModel() { average_.take_out(); }
  AverageInModel(const AverageInModel&) = delete;
  AverageInModel& operator=(const AverageInModel&) = delete;

 private:
  WeightAverage& average_;
};

/// One training: what its loop sees, what its callbacks see, and all they share.
///
/// As the document has the group.
std::string name_of_rate(std::size_t group) {
  return "learning_rate.groups." + std::to_string(group);
}

/// An epoch is: steps → the average put in → validation → callbacks → the average taken out → row
/// of history → checkpoint.
class Session final : public TrainingSession,
                      public TrainingControl,
                      public SolvesLastLayer,
                      public SearchesStructure {
 public:
  Session(TrainingWorkflow& loop, const SessionSetup& setup, RunContext& context)
      : loop_(loop),
        setup_(setup),
        context_(context),
        step_(*setup.model, *setup.objective, *setup.optimizer,
              {setup.clipping, setup.gradients, setup.replicas, setup.groups, setup.timeline,
               setup.path, setup.precision,
               // A captured step updates the same parameters every time.
               setup.structure_training == nullptr ? setup.capture : nullptr}),
        marks_(setup.backend, device(), setup.timeline),
        batches_per_epoch_(setup.training->batches_per_epoch()),
        span_{setup.optimizer->learning_rate(), total_steps(), batches_per_epoch_},
        checkpoints_(setup.checkpoint_every, span_),
        tested_(*setup.objective) {
    for (TrainingCallback* callback : setup.callbacks) {
      if (callback->wants_steps())
        step_callbacks_.push_back(callback);
    }
    step_.measure({!step_callbacks_.empty(), false});
    if (setup.structure_training != nullptr) {
      structure_.emplace(*setup.model, step_.arena());
      step_.update_only(structure_->rest());
    }
  }

  TrainingResult train() {
    for (TrainingCallback* callback : setup_.callbacks)
      callback->begin(*this);
    has_begun_ = true;
    note_undefined();
    expect_something_to_train();
    if (const std::optional<StateDict> saved = context_.resume_state()) {
      load(*saved);
    } else if (average_) {
      average_->add_after(0);
    }
    setup_.model->train();
    loop_.train(*this);
    save_finished_epoch();
    choose_weights();
    setup_.model->eval();
    TrainingResult result;
    result.final_loss = last_loss_;
    result.best_loss =
        best_epoch_ > 0 ? best_loss_ : Number::undefined("no epoch was evaluated to a finite loss");
    result.best_epoch = best_epoch_;
    result.total_epochs = epoch_;
    result.training_time_seconds = seconds();
    result.selects_best = ends_with_kept_ && !kept_weights_.empty();
    if (result.selects_best)
      result.chosen_by = chosen_by_;
    result.has_average = result.selects_best ? kept_is_average_ : has_average();
    result.stop_reason = stop_reason_;
    result.skipped_steps = skipped_.count;
    result.skipped_at = skipped_.first;
    result.replayed_steps = step_.replayed();
    result.why_not_captured = step_.why_not_captured();
    return result;
  }

  // For the loop.

  bool is_finished() const override { return is_ending() && batches_done_ == 0; }
  std::int64_t epochs_done() const override { return epoch_; }
  std::int64_t steps_done() const override { return step_count_; }
  std::optional<std::int64_t> epochs() const override { return setup_.epochs; }
  std::optional<std::int64_t> steps_per_epoch() const override { return batches_per_epoch_; }
  const RandomStreams& random() const override { return context_.random(); }

  double scheduled_rate() const override {
    if (is_last_of_epoch())
      return learning_rate_;  // no step will have it
    return setup_.schedule->rate_at(step_count_, span_) * rate_factor_;
  }

  bool next_epoch() override {
    save_finished_epoch();
    return !is_finished();
  }

  std::optional<TestedBatch> test_next() override {
    TREADLE_EXPECTS(setup_.validation == nullptr,
                    "test_next() is for trainings without validation rows; declare "
                    "x-treadle-tests-first in the schema of the loop");
    TREADLE_EXPECTS(tested_.next.size() == 0, "after test_next() comes step()");
    save_finished_epoch();
    TREADLE_EXPECTS(!is_finished(), "the training is finished; look at next_epoch() first");
    Batch batch;
    if (is_last_of_epoch() || !take_batch(batch))
      return std::nullopt;
    if (tested_.losses.rows() == 0)
      reset_metrics();
    {
      // As for validation rows: what the training would end with. Statistics of batch normalization
      // that belong to an average would take a pass over the rows.
      std::optional<AverageInModel> averaged;
      if (!refreshes_ && has_average())
        averaged.emplace(*average_);
      test_batch(evaluation_setup(setup_), batch, tested_.losses, setup_.metrics);
    }
    tested_.next = batch;
    tested_.groups.clear();
    if (setup_.row_groups.defined()) {
      const at::Tensor groups = setup_.row_groups.index_select(0, batch.rows);
      const auto* const first = groups.data_ptr<std::int64_t>();
      tested_.groups.assign(first, first + groups.numel());
    }
    return TestedBatch{batch.size(), tested_.groups, setup_.group_names};
  }

  bool step(double learning_rate) override {
    save_finished_epoch();
    TREADLE_EXPECTS(!is_finished(), "the training is finished; look at next_epoch() first");
    // A callback may have ended the epoch. All its batches may be behind it: a training can be
    // stopped while it is evaluated.
    if (is_last_of_epoch())
      return false;
    if (batches_done_ == 0) {
      step_.set_model_state({});
      epoch_start_ = Clock::now();
    }
    Batch batch = std::exchange(tested_.next, Batch());
    if (batch.size() == 0 && !take_batch(batch))
      return false;
    const std::uint64_t seed =
        context_.random().seed("model", {static_cast<std::uint64_t>(step_count_)});
    learning_rate_ = learning_rate;
    marks_.begin_step();
    step_.run(batch, step_count_ + 1, learning_rate, seed, group_rates(step_count_, learning_rate));
    marks_.end_step();
    batch = Batch();  // its memory is needed for a batch to come
    ++step_count_;
    ++batches_done_;
    if (step_.is_read_at_once() || step_count_ % kStepsBetweenReads == 0)
      expect_no_divergence();
    if (step_count_ % kStepsBetweenReads == 0)
      marks_.read();
    if (!step_callbacks_.empty())
      tell_callbacks();
    end_step();
    return true;
  }

  bool read_rows(const std::function<void(const LastLayerRows&)>& take) override {
    save_finished_epoch();
    TREADLE_EXPECTS(!is_finished(), "the training is finished; look at next_epoch() first");
    if (average_) {
      refuse(
          "a training in closed form has no steps whose weights could be averaged; leave \"ema\" "
          "and \"swa\" out");
    }
    if (is_last_of_epoch())
      return false;
    if (batches_done_ == 0)
      epoch_start_ = Clock::now();
    Batch batch;
    if (!take_batch(batch))
      return false;
    take(
        last_layer(*setup_.model, *setup_.objective, batch, setup_.precision, context_.stop_token())
            .rows);
    ++step_count_;
    ++batches_done_;
    end_step();
    return true;
  }

  void set_last_layer(const at::Tensor& weight, const at::Tensor& bias) override {
    TREADLE_EXPECTS(batches_done_ > 0, "the last layer is computed from rows of its epoch");
    const auto stream = setup_.training->epoch(epoch_);
    Batch batch;
    TREADLE_EXPECTS(stream->next(batch), "there are no rows to train on");
    {
      const LastLayer layer = last_layer(*setup_.model, *setup_.objective, batch.to(device()),
                                         setup_.precision, context_.stop_token());
      const at::NoGradGuard no_gradients;
      layer.weight.copy_(weight);
      if (layer.bias.defined())
        layer.bias.copy_(bias);
    }
    try {
      const auto rows = setup_.training->epoch(epoch_);
      solved_loss_ =
          evaluate_metrics(evaluation_setup(setup_), *rows, context_.stop_token(), {}).loss;
    } catch (const Interrupted&) {
      save({epoch_, step_count_, false, false});
      interrupt();
    }
  }

  std::span<WeighsOperations* const> structures() const override {
    expect_structure();
    return structure_->layers();
  }

  void step_structure(double learning_rate) override {
    expect_structure();
    save_finished_epoch();
    TREADLE_EXPECTS(!is_finished(), "the training is finished; look at next_epoch() first");
    if (is_last_of_epoch())
      return;
    Batch batch = next_structure_batch();
    const std::uint64_t seed =
        context_.random().seed("structure", {static_cast<std::uint64_t>(structure_steps_)});
    ++structure_steps_;
    step_.update_only(structure_->alphas());
    // Its own count of steps: the first for the alphas is the first.
    step_.run(batch, structure_steps_, learning_rate, seed,
              group_rates(step_count_, learning_rate));
    step_.update_only(structure_->rest());
    if (step_.is_read_at_once())
      expect_no_divergence();
  }

  double structure_loss() override {
    expect_structure();
    try {
      const auto rows = setup_.structure_evaluation->epoch(0);
      return evaluate_metrics(evaluation_setup(setup_), *rows, context_.stop_token(), {}).loss;
    } catch (const Interrupted&) {
      save({epoch_, step_count_, batches_done_ == 0, false});
      interrupt();
    }
  }

  EpochSummary finish_epoch() override {
    TREADLE_EXPECTS(batches_done_ > 0, "an epoch ends after at least one step of its own");
    if (is_interrupted_)
      interrupt();
    note_uncaptured();
    stream_.reset();
    tested_.next = Batch();
    expect_no_divergence();
    marks_.end_epoch();
    EpochSummary summary;
    summary.epoch = epoch_ + 1;
    summary.epochs = setup_.epochs;
    summary.step = step_count_;
    summary.learning_rate = learning_rate_;
    summary.train_loss = train_loss();
    summary.logged = step_.logged_means();
    if (logs_gradient_norm_) {
      summary.logged.push_back({kGradientNorm, step_.mean_gradient_norm(), Direction::kNone});
    }
    if (const auto rates = group_rates(step_count_ - 1, learning_rate_); !rates.empty()) {
      for (std::size_t i = 0; i < rates.size(); ++i)
        summary.logged.push_back({name_of_rate(i), rates[i], Direction::kNone});
    }
    if (tolerated_skips_ > 0 || scales_loss()) {
      summary.logged.push_back(
          {kSkippedSteps, static_cast<double>(step_.record().skipped), Direction::kLowerIsBetter});
    }
    if (scales_loss())
      summary.logged.push_back({kLossScale, step_.record().loss_scale.scale, Direction::kNone});
    {
      // What is evaluated, and kept when it is the best, is what the training would end with.
      std::optional<AverageInModel> averaged;
      try {
        const bool is_due = epoch_ + 1 == setup_.epochs || has_all_steps() ||
                            (epoch_ + 1) % setup_.evaluate_every == 0 || !stop_reason_.empty();
        if (setup_.validation != nullptr && is_due) {
          if (has_average()) {
            averaged.emplace(*average_);
            refresh_statistics(epoch_);
          }
          evaluate(*setup_.validation, 0, summary);
        }
      } catch (const Interrupted&) {
        averaged.reset();
        save({epoch_, step_count_, false, false});
        interrupt();
      }
      take_tested(summary);
      note_skipped();
      step_.clear_totals();
      last_loss_ = summary.val_loss.value_or(summary.train_loss);
      ++epoch_;
      batches_done_ = 0;
      run_callbacks(summary);
    }
    summary.best = is_best(summary);
    summary.decisions = std::exchange(epoch_changes_, {});
    summary.seconds = seconds_since(epoch_start_);
    context_.epoch_completed(summary);
    has_unsaved_epoch_ = true;
    return summary;
  }

  // For both.

  void stop(const std::string& reason) override {
    if (is_ending())
      return;
    stop_reason_ = reason.empty() ? "asked for" : reason;
    epoch_changes_.push_back("stopped: " + stop_reason_);
  }

  // For callbacks.

  const std::string& name() const override { return context_.fit().path(); }
  bool is_refit() const override { return setup_.is_refit; }
  bool is_ending() const { return has_all_epochs() || has_all_steps() || !stop_reason_.empty(); }
  double seconds() const override { return earlier_seconds_ + seconds_since(started_); }
  double learning_rate() const override { return learning_rate_; }
  Model& model() override { return *setup_.model; }
  double rate_factor() const override { return rate_factor_; }
  std::int64_t last_changed_epoch() const override { return last_changed_epoch_; }

  std::int64_t steps(const Duration& duration) const override { return span_.steps(duration); }
  std::int64_t epochs(const Duration& duration) const override {
    if (!batches_per_epoch_ && duration.unit == Duration::Unit::kEpochs)
      return static_cast<std::int64_t>(std::ceil(duration.value));
    if (!batches_per_epoch_) {
      throw TrainingError("\"" + duration.text() +
                          "\" cannot be counted in epochs: how many steps one has is known at its "
                          "end; give it in epochs, or set training.steps_per_epoch");
    }
    return (steps(duration) + *batches_per_epoch_ - 1) / *batches_per_epoch_;
  }

  const std::vector<std::string>& logged_names() override {
    if (names_.empty())
      names_ = names_of_history();
    return names_;
  }
  void follow(const std::string& name) override { followed_.insert(name); }

  void average_weights(const WeightAveraging& averaging) override {
    expect_beginning("average_weights");
    if (average_) {
      refuse(
          "a training has one average of its weights, and two were asked for; leave one of \"ema\" "
          "and \"swa\" out");
    }
    const AveragingPlan plan{steps(averaging.start),
                             std::max<std::int64_t>(1, steps(averaging.every)), averaging.decay};
    average_ = std::make_unique<WeightAverage>(step_.arena(), *setup_.model, plan);
    step_.average_into(*average_);
    refreshes_ = gathers_statistics(*setup_.model);
  }
  void end_with_kept_weights(const std::string& chosen_by) override {
    expect_beginning("end_with_kept_weights");
    if (ends_with_kept_) {
      refuse(
          "two callbacks would choose the weights that the training ends with; give early_stopping "
          "\"restore_best_weights\": false, or leave the other out");
    }
    ends_with_kept_ = true;
    chosen_by_ = chosen_by;
  }
  void log_gradient_norm() override {
    expect_beginning("log_gradient_norm");
    logs_gradient_norm_ = true;
    step_.measure({!step_callbacks_.empty(), true});
  }
  void tolerate_skipped_steps(std::int64_t most_in_a_row) override {
    expect_beginning("tolerate_skipped_steps");
    tolerated_skips_ = std::max(tolerated_skips_, most_in_a_row);
    step_.tolerate_skipped(tolerated_skips_);
  }

  void multiply_rate(double factor) override { rate_factor_ *= factor; }
  void keep_weights() override {
    TREADLE_EXPECTS(ends_with_kept_, "keep_weights() needs end_with_kept_weights() in begin()");
    const StateDict weights = module_state(*setup_.model);
    const Waiting waiting(setup_.timeline, device());
    count_fetched(weights, setup_.timeline);
    kept_weights_ = weights.snapshot();
    kept_is_average_ = average_ && average_->is_in_model();
    keeps_epoch_ = true;
  }
  void changed(const std::string& what) override {
    last_changed_epoch_ = epoch_of_last_step();
    epoch_changes_.push_back(what);
    context_.note(name() + ", epoch " + std::to_string(last_changed_epoch_) + ": " + what);
  }
  void note(const std::string& text) override { context_.note(text); }
  void log(const std::string& name, double value) override {
    logged_.push_back({name, value, Direction::kNone});
  }

 private:
  bool scales_loss() const { return setup_.precision.scales_loss; }
  c10::Device device() const { return step_.device(); }
  /// Reads how many weights are in it.
  bool has_average() const {
    if (!average_ || !average_->has_begun())
      return false;
    const Waiting waiting(setup_.timeline, device(), 1);
    return average_->count() > 0;
  }

  /// Of the epoch.
  Number train_loss() {
    if (solved_loss_)
      return *std::exchange(solved_loss_, {});
    const LossTotals& totals = step_.totals();
    return totals.rows() == 0 ? Number::undefined("every step was skipped") : totals.value();
  }

  /// The skipped steps of an epoch, in its row of history and for the result.
  void note_skipped() {
    const StepRecord& now = step_.record();
    if (now.skipped == 0)
      return;
    std::string steps;
    for (const std::int64_t step : now.skipped_at) {
      steps += " " + std::to_string(step);
      if (skipped_.first.size() < static_cast<std::size_t>(StepRecord::kMostListed))
        skipped_.first.push_back(step);
    }
    if (now.skipped > StepRecord::kMostListed)
      steps += " …";
    skipped_.count += now.skipped;
    // Without a comma, which history.csv does not take.
    std::string what = "skipped " + std::to_string(now.skipped) +
                       (now.skipped == 1 ? " step" : " steps") +
                       " because the loss or a gradient was not finite (step" + steps + ")";
    if (scales_loss())
      what += " and lowered the loss scale to " + c10::str(now.loss_scale.scale);
    epoch_changes_.push_back(std::move(what));
  }

  /// As far as it is known before the first step.
  std::optional<std::int64_t> total_steps() const {
    std::optional<std::int64_t> total = setup_.max_steps;
    if (setup_.epochs && batches_per_epoch_) {
      const std::int64_t of_epochs = *setup_.epochs * *batches_per_epoch_;
      total = std::min(of_epochs, total.value_or(of_epochs));
    }
    return total;
  }
  // More than all where a training that goes on is given a lower limit than it has passed.
  bool has_all_epochs() const { return setup_.epochs && epoch_ >= *setup_.epochs; }
  bool has_all_steps() const { return setup_.max_steps && step_count_ >= *setup_.max_steps; }
  /// Whether no step of the epoch is to follow. False at the end of a stream, before it is met.
  bool is_last_of_epoch() const {
    return !stop_reason_.empty() || batches_done_ == batches_per_epoch_ || has_all_steps();
  }

  bool has_group_schedules() const {
    return std::any_of(setup_.groups.begin(), setup_.groups.end(),
                       [](const auto& group) { return group.schedule != nullptr; });
  }

  /// By group, where the rest has `learning_rate` in step `step`, counted from 0: see
  /// TrainingSession::step(). Empty where no group has a schedule of its own.
  std::span<const double> group_rates(std::int64_t step, double learning_rate) {
    if (!has_group_schedules())
      return {};
    // A workflow may train at another rate than the schedule's.
    const double scheduled = setup_.schedule->rate_at(step, span_);
    const double factor = scheduled > 0 ? learning_rate / scheduled : rate_factor_;
    group_rates_.clear();
    for (const ParameterGroup& group : setup_.groups) {
      ScheduleSpan span = span_;
      span.base_rate = group.optimizer->learning_rate();
      group_rates_.push_back(group.schedule != nullptr
                                 ? group.schedule->rate_at(step, span) * factor
                                 : learning_rate * (span.base_rate / span_.base_rate));
    }
    return group_rates_;
  }

  void expect_beginning(const char* function) const {
    TREADLE_EXPECTS(!has_begun_, std::string(function) + "() belongs in begin()");
  }

  [[noreturn]] static void refuse(const std::string& why) {
    throw DocumentError({Problem{{}, "/training", why}});
  }

  /// The numbers of a row of history.
  std::vector<std::string> names_of_history() {
    std::vector<std::string> names{"train_loss", "learning_rate"};
    const auto add = [&](const std::vector<std::string>& more) {
      names.insert(names.end(), more.begin(), more.end());
    };
    if (BatchSource* const rows = setup_.validation ? setup_.validation : setup_.example) {
      names.emplace_back("val_loss");
      add(metric_names(*rows));
    }
    if (const auto* shows = dynamic_cast<const LogsValues*>(setup_.model))
      add(shows->logged_names());
    if (setup_.gradients != nullptr)
      add(setup_.gradients->log_names());
    for (const TrainingCallback* callback : setup_.callbacks)
      add(callback->log_names());
    for (std::size_t i = 0; has_group_schedules() && i < setup_.groups.size(); ++i)
      names.push_back(name_of_rate(i));
    if (scales_loss()) {
      if (std::find(names.begin(), names.end(), kSkippedSteps) == names.end())
        names.emplace_back(kSkippedSteps);
      names.emplace_back(kLossScale);
    }
    return names;
  }

  /// Metrics name their values when they have seen something; the last batch is as good as any.
  std::vector<std::string> metric_names(BatchSource& rows) {
    first_row_.emplace();
    evaluate(rows, rows.batches_per_epoch().value() - 1, *first_row_);
    std::vector<std::string> names;
    for (const MetricValue& value : first_row_->metrics)
      names.push_back(value.name);
    return names;
  }

  /// Followed numbers that no model can have, as AUC where all validation rows are of one class.
  /// What is defined of some rows is defined of more, so the last batch is nearly always enough.
  void note_undefined() {
    if (setup_.validation == nullptr || !first_row_)
      return;
    const auto undefined = [&] {
      std::vector<MetricValue> values;
      for (const std::string& name : followed_) {
        std::optional<MetricValue> value = find_value(*first_row_, name);
        if (value && value->value.is_undefined())
          values.push_back(*std::move(value));
      }
      return values;
    };
    if (setup_.validation->batches_per_epoch().value() > 1 && !undefined().empty())
      evaluate(*setup_.validation, 0, first_row_.emplace());
    for (const MetricValue& value : undefined()) {
      noted_.insert(value.name);
      context_.note_once(value.name + ": " + value.value.why(),
                         name() + ": \"" + value.name + "\" has no value on the validation rows (" +
                             value.value.why() + "), so nothing is chosen or decided by it");
    }
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

  void note_uncaptured() {
    if (has_noted_uncaptured_ || step_.why_not_captured().empty())
      return;
    has_noted_uncaptured_ = true;
    context_.note("steps are not captured: " + step_.why_not_captured());
  }

  /// Callbacks want the numbers of the step: a device is waited for.
  void tell_callbacks() {
    const StepRecord& now = step_.record();
    StepReport report{
        step_count_, learning_rate_, now.batch.value(), {}, now.skipped_in_a_row == 0};
    if (logs_gradient_norm_)
      report.gradient_norm = now.gradient_norm;
    for (TrainingCallback* callback : step_callbacks_)
      callback->after_step(report, *this);
  }

  void run_callbacks(EpochSummary& summary) {
    keeps_epoch_ = false;
    for (TrainingCallback* callback : setup_.callbacks) {
      callback->after_epoch(summary, *this);
      // What one has logged, those after it see.
      summary.logged.insert(summary.logged.end(), logged_.begin(), logged_.end());
      logged_.clear();
    }
  }

  /// Throws Interrupted when a stop is requested.
  void evaluate(BatchSource& rows, std::int64_t first_batch, EpochSummary& summary) const {
    const auto stream = rows.epoch(0, first_batch);
    const EvaluationTotals totals =
        evaluate_metrics(evaluation_setup(setup_), *stream, context_.stop_token(), setup_.metrics);
    summary.val_loss = totals.loss;
    add_metrics(summary);
  }

  void add_metrics(EpochSummary& summary) const {
    for (const TargetMetric& metric : setup_.metrics) {
      const MetricResult result = metric.compute();
      summary.metrics.insert(summary.metrics.end(), result.values.begin(), result.values.end());
    }
  }

  /// The batches of the epoch that were tested before they were trained on.
  void take_tested(EpochSummary& summary) {
    if (tested_.losses.rows() == 0)
      return;
    summary.val_loss = tested_.losses.value();
    add_metrics(summary);
    tested_.losses.clear();
  }

  void reset_metrics() const {
    for (const TargetMetric& metric : setup_.metrics)
      metric.metric->reset();
  }

  /// The next batch of the epoch, on the device; false: there is none.
  bool take_batch(Batch& batch) {
    if (!stream_)
      stream_ = setup_.training->epoch(epoch_, batches_done_);
    if (!stream_->next(batch))
      return false;
    if (!device().is_cpu())
      batch = sent(batch, device(), setup_.timeline);
    return true;
  }

  void expect_structure() const {
    TREADLE_EXPECTS(structure_.has_value(),
                    "no rows are set aside for a structure; declare x-treadle-sets-aside in the "
                    "schema of the loop");
  }

  /// On the device. Passes follow one another.
  Batch next_structure_batch() {
    const std::int64_t a_pass = setup_.structure_training->batches_per_epoch().value();
    if (!structure_stream_ || structure_steps_ % a_pass == 0) {
      structure_stream_.reset();
      structure_stream_ =
          setup_.structure_training->epoch(structure_steps_ / a_pass, structure_steps_ % a_pass);
    }
    Batch batch;
    TREADLE_EXPECTS(structure_stream_->next(batch), "a pass has as many batches as it says");
    return device().is_cpu() ? batch : sent(batch, device(), setup_.timeline);
  }

  /// For an average in the model: its layers' statistics, from the training rows of `epoch`.
  void refresh_statistics(std::int64_t epoch) {
    if (!refreshes_)
      return;
    const auto stream = setup_.training->epoch(epoch);
    const std::uint64_t seed =
        context_.random().seed("refresh", {static_cast<std::uint64_t>(epoch)});
    engine::refresh_statistics(*setup_.model, setup_.objective->outputs().size(), *stream, seed,
                               context_.stop_token(), setup_.precision);
  }

  /// After the last epoch: those kept, the average, or the last.
  void choose_weights() {
    if (ends_with_kept_ && kept_weights_.empty() && noted_.count(chosen_by_) == 0) {
      context_.note(name() + ": \"" + chosen_by_ +
                    "\" had no finite value in any epoch, so no epoch is the best; the training "
                    "ends with its last weights");
    }
    if (ends_with_kept_ && !kept_weights_.empty()) {
      count_sent(kept_weights_, device(), setup_.timeline);
      load_module_state(*setup_.model, kept_weights_);
    } else if (has_average()) {
      average_->put_in();
      refresh_statistics(epoch_ - 1);
    } else if (average_) {
      context_.note(
          "the training ended before the averaging of its weights began; it ends with the last "
          "weights");
    }
  }

  /// Whether the epoch that has just ended is the best so far: by the callback that keeps weights,
  /// else by the loss.
  bool is_best(const EpochSummary& summary) {
    const bool is_evaluated = summary.val_loss || setup_.validation == nullptr;
    const bool by_loss =
        is_evaluated && last_loss_.is_known() && (best_epoch_ == 0 || last_loss_ < best_loss_);
    const bool best = ends_with_kept_ && !kept_weights_.empty() ? keeps_epoch_ : by_loss;
    if (best) {
      best_loss_ = last_loss_;
      best_epoch_ = epoch_;
    }
    return best;
  }

  void end_step() {
    context_.step_completed({epoch_ + 1, setup_.epochs, step_count_, span_.total_steps});
    if (!is_last_of_epoch())
      save_if_due(false);
  }

  /// Whatever the loop has done after the epoch is part of its end.
  void save_finished_epoch() {
    if (is_interrupted_)
      interrupt();
    if (std::exchange(has_unsaved_epoch_, false))
      save_if_due(true);
  }

  void save_if_due(bool at_epoch_end) {
    const bool stopping = context_.stop_token().stop_requested();
    const bool finished = at_epoch_end && is_finished();
    if (!stopping && !finished && !checkpoints_.due(step_count_))
      return;
    save({epoch_, step_count_, at_epoch_end, finished});
    if (stopping && !finished)
      interrupt();
  }

  void save(const TrainingPosition& position) {
    expect_no_divergence();
    // A gradient can overflow although the loss did not: a checkpoint must never hold such weights.
    const bool is_finite = [&] {
      const Waiting waiting(setup_.timeline, device(), 1);
      return std::isfinite(step_.arena().parameters().sum().item<double>());
    }();
    if (!is_finite)
      report_divergence(step_count_);
    context_.save_checkpoint(state(), position, setup_.keep_checkpoints);
    checkpoints_.saved(step_count_);
  }

  std::int64_t epoch_of_last_step() const { return batches_done_ > 0 ? epoch_ + 1 : epoch_; }

  [[noreturn]] void interrupt() {
    is_interrupted_ = true;
    throw Interrupted("stopped after step " + std::to_string(step_count_) + " of epoch " +
                      std::to_string(epoch_of_last_step()));
  }

  void expect_no_divergence() {
    if (const std::int64_t step = step_.record().diverged_at; step > 0)
      report_divergence(step);
  }

  [[noreturn]] void report_divergence(std::int64_t step) {
    const std::string checkpoint = context_.last_checkpoint();
    throw TrainingError(
        "the loss or its gradient became NaN or infinite in epoch " +
        std::to_string(epoch_of_last_step()) + ", step " + std::to_string(step) + " (" + name() +
        "); " +
        (checkpoint.empty() ? "there is no checkpoint yet"
                            : "the last good checkpoint is " + checkpoint) +
        (scales_loss()
             ? "; the loss was scaled by as little as " +
                   c10::str(step_.record().loss_scale.scale) + ", so it is not float16 alone"
             : std::string()) +
        "; try a lower optimizer.learning_rate, or bound the gradients with training.clip.norm");
  }

  StateDict state() {
    StateDict state;
    state.put("model", module_state(*setup_.model));
    state.put("optimizer", step_.slots().state());
    if (const StateDict model_state = step_.model_state(); !model_state.empty())
      state.put("model_state", model_state);
    state.put("epoch", nlohmann::json(epoch_));
    state.put("step", nlohmann::json(step_count_));
    state.put("batch", nlohmann::json(batches_done_));
    state.put("numbers", step_.numbers());
    state.put("skipped_steps", nlohmann::json(skipped_.count));
    state.put("skipped_at", nlohmann::json(skipped_.first));
    state.put_number("learning_rate", learning_rate_);
    state.put_number("rate_factor", rate_factor_);
    state.put_number("last_loss", last_loss_);
    state.put_number("best_loss", best_loss_);
    state.put("best_epoch", nlohmann::json(best_epoch_));
    state.put("stop_reason", nlohmann::json(stop_reason_));
    state.put("last_changed_epoch", nlohmann::json(last_changed_epoch_));
    state.put("epoch_changes", nlohmann::json(epoch_changes_));
    state.put("seconds", nlohmann::json(seconds()));
    if (structure_)
      state.put("structure_steps", nlohmann::json(structure_steps_));
    if (tested_.losses.rows() > 0)
      state.put("tested", tested_state());
    if (const StateDict data = setup_.training->state(epoch_, batches_done_); !data.empty())
      state.put("data", data);
    if (!kept_weights_.empty())
      state.put("kept_model", kept_weights_);
    state.put("kept_is_average", nlohmann::json(kept_is_average_));
    if (average_) {
      const Waiting waiting(setup_.timeline, device(), average_->has_begun() ? 1 : 0);
      state.put("average", average_->state());
    }
    if (const StateDict loop = loop_.state(); !loop.empty())
      state.put("loop", loop);
    for (std::size_t i = 0; i < setup_.callbacks.size(); ++i) {
      if (const StateDict callback = setup_.callbacks[i]->state(); !callback.empty())
        state.put("callback-" + std::to_string(i), callback);
    }
    return state;
  }

  StateDict tested_state() const {
    StateDict state;
    state.put("losses", tested_.losses.state());
    for (std::size_t i = 0; i < setup_.metrics.size(); ++i)
      state.put("metric-" + std::to_string(i), setup_.metrics[i].metric->state());
    return state;
  }

  void load_tested(const StateDict& saved) {
    tested_.losses.load_state(saved.part("losses"));
    reset_metrics();
    for (std::size_t i = 0; i < setup_.metrics.size(); ++i)
      setup_.metrics[i].metric->load_state(saved.part("metric-" + std::to_string(i)));
  }

  void load(const StateDict& saved) {
    for (const char* const part : {"model", "optimizer"})
      count_sent(saved.part(part), device(), setup_.timeline);
    load_module_state(*setup_.model, saved.part("model"));
    step_.slots().load_state(saved.part("optimizer"));
    if (saved.has_part("model_state"))
      step_.set_model_state(saved.part("model_state"));
    step_.set_numbers(saved.part("numbers"));
    skipped_.count = saved.value("skipped_steps").get<std::int64_t>();
    skipped_.first = saved.value("skipped_at").get<std::vector<std::int64_t>>();
    epoch_ = saved.value("epoch").get<std::int64_t>();
    step_count_ = saved.value("step").get<std::int64_t>();
    batches_done_ = saved.value("batch").get<std::int64_t>();
    learning_rate_ = saved.number("learning_rate");
    rate_factor_ = saved.number("rate_factor");
    last_loss_ = saved.number("last_loss");
    best_loss_ = saved.number("best_loss");
    best_epoch_ = saved.value("best_epoch").get<std::int64_t>();
    stop_reason_ = saved.value("stop_reason").get<std::string>();
    last_changed_epoch_ = saved.value("last_changed_epoch").get<std::int64_t>();
    epoch_changes_ = saved.value("epoch_changes").get<std::vector<std::string>>();
    earlier_seconds_ = saved.value("seconds").get<double>();
    if (structure_)
      structure_steps_ = saved.value("structure_steps").get<std::int64_t>();
    if (saved.has_part("tested"))
      load_tested(saved.part("tested"));
    if (saved.has_part("data"))
      setup_.training->load_state(saved.part("data"));
    if (saved.has_part("kept_model"))
      kept_weights_ = saved.part("kept_model");
    kept_is_average_ = saved.value("kept_is_average").get<bool>();
    if (average_)
      average_->load_state(saved.part("average"));
    loop_.load_state(saved.has_part("loop") ? saved.part("loop") : StateDict());
    for (std::size_t i = 0; i < setup_.callbacks.size(); ++i) {
      const std::string part = "callback-" + std::to_string(i);
      if (saved.has_part(part))
        setup_.callbacks[i]->load_state(saved.part(part));
    }
    checkpoints_.saved(step_count_);
  }

  TrainingWorkflow& loop_;
  const SessionSetup& setup_;
  RunContext& context_;
  TrainingStep step_;
  StepMarks marks_;
  const std::optional<std::int64_t> batches_per_epoch_;  // nothing: a stream
  const ScheduleSpan span_;
  CheckpointClock checkpoints_;
  std::vector<TrainingCallback*> step_callbacks_;  // those that want steps
  const Clock::time_point started_ = Clock::now();
  Clock::time_point epoch_start_ = started_;

  // What callbacks asked for in begin().
  bool has_begun_ = false;
  std::unique_ptr<WeightAverage> average_;  // null: the weights are not averaged
  bool refreshes_ = false;                  // an average needs statistics of its own
  bool ends_with_kept_ = false;
  std::string chosen_by_;
  bool logs_gradient_norm_ = false;
  std::int64_t tolerated_skips_ = 0;
  std::vector<std::string> names_;  // see logged_names()
  std::set<std::string> followed_;
  std::set<std::string> noted_;            // of those, what is undefined
  std::optional<EpochSummary> first_row_;  // of the untrained model, of some validation rows

  /// Of the epoch: what test_next() has predicted.
  struct Tested {
    explicit Tested(const Objective& objective) : losses(objective) {}
    LossTotals losses;
    Batch next;                        // for step(); empty: it takes one itself
    std::vector<std::int64_t> groups;  // of that
  } tested_;

  std::optional<StructureParts> structure_;  // nothing: no structure is searched
  std::unique_ptr<BatchStream> structure_stream_;
  std::int64_t structure_steps_ = 0;  // done for it

  std::optional<Number> solved_loss_;    // of the epoch, where its last layer was computed
  std::unique_ptr<BatchStream> stream_;  // of the epoch; null before its first step here
  std::int64_t epoch_ = 0;               // epochs done
  std::int64_t step_count_ = 0;          // steps done
  std::int64_t batches_done_ = 0;        // of the epoch
  double learning_rate_ = 0;             // of the last step
  double rate_factor_ = 1;
  std::vector<double> group_rates_;  // what group_rates() has returned
  double earlier_seconds_ = 0;       // before the checkpoint this training continues from
  Number last_loss_;
  Number best_loss_;
  std::int64_t best_epoch_ = 0;
  std::string stop_reason_;
  StateDict kept_weights_;
  bool kept_is_average_ = false;
  bool keeps_epoch_ = false;
  struct {
    std::int64_t count = 0;
    std::vector<std::int64_t> first;
  } skipped_;  // of epochs that have ended
  std::int64_t last_changed_epoch_ = 0;
  std::vector<std::string> epoch_changes_;
  std::vector<MetricValue> logged_;
  bool has_unsaved_epoch_ = false;
  bool has_noted_uncaptured_ = false;
  bool is_interrupted_ = false;
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
  const auto stream = setup.validation->epoch(0);
  const EvaluationTotals totals =
      evaluate_metrics(evaluation_setup(setup), *stream, std::move(stop), setup.metrics);
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
