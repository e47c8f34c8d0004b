#include "run_session.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <fstream>
#include <utility>

#include <treadle/base/atomic_file.h>
#include <treadle/base/hash.h>
#include <treadle/base/version.h>
#include <treadle/core/module_state.h>
#include <treadle/core/safetensors.h>
#include <treadle/core/set_aside.h>
#include <treadle/engine/available_memory.h>
#include <treadle/engine/trials.h>
#include <treadle/host/catalog/plugin_lock.h>
#include <treadle/host/run/report.h>
#include <treadle/host/run/state_folder.h>

#include "data_facts.h"
#include "json_path.h"
#include "result_json.h"
#include "run_conditions.h"
#include "run_record.h"
#include "saved_model.h"
#include "state_saver.h"
#include "trace.h"
#include "trial_memory.h"

namespace treadle::internal {

namespace fs = std::filesystem;

/// A training's way to the run: files, observers, the stop.
class RunSession::Context final : public engine::RunContext {
 public:
  /// `settled` is called once: after the first steps, or the first epoch.
  Context(RunSession& session, Trial& trial, engine::Settled settled)
      : session_(session),
        trial_(trial),
        settled_(std::move(settled)),
        store_(session.folder_.checkpoints(trial.id().name)),
        voice_(session.announcer_, trial.id()),
        saver_(session.writer_) {
    if (!session.resumed_)
      return;
    loaded_ = store_.load_latest([&](const std::string& warning) { do_note(warning); });
    const std::int64_t epochs = loaded_ ? loaded_->position.epochs_done : 0;
    session.audience_.between_calls([&] {
      session.history_.cut_back(trial.id().name, epochs);
      session.events_.cut_back(trial.id().name, epochs);
    });
    if (loaded_)
      session.recognize(loaded_->state, trial.id(), loaded_->folder);
  }

  const StateDict* saved_preprocessing() const {
    return loaded_ ? &loaded_->state.part("preprocessing") : nullptr;
  }

  /// Waits until what was saved and told is where it should be; throws what went wrong on the way.
  void finish() {
    saver_.finish();
    session_.announcer_.drain();
  }

  void complete(const TrialSummary& summary) {
    voice_.tell([id = trial_.id(), summary](RunObserver& o) { o.trial_completed(id, summary); });
  }

  /// Whether a failure's text names this training, as that of a training loop does.
  bool is_named_in(const std::string& text) const {
    return text.find("(" + trial_.id().name + ")") != std::string::npos;
  }

  /// "training fold-1, after step 16 (epoch 2)"
  std::string place() const {
    const std::string training = "training " + trial_.id().name;
    if (last_step_.step == 0)
      return training + ", before its first step was done";
    return training + ", after step " + std::to_string(last_step_.step) + " (epoch " +
           std::to_string(last_step_.epoch) + ")";
  }

 private:
  const TrialId& do_trial() const override { return trial_.id(); }
  const RandomStreams& do_random() const override { return trial_.random(); }
  std::stop_token do_stop_token() const override { return session_.options_.stop; }

  void do_step_completed(const StepProgress& progress) override {
    session_.trained_.store(true, std::memory_order_relaxed);
    last_step_ = progress;
    if (settled_ && ++steps_made_ == kStepsToSettle)
      settle();
    saver_.expect_no_failure();
    voice_.step_completed(progress);
  }
  void do_epoch_completed(const EpochSummary& summary) override {
    settle();
    voice_.tell([id = trial_.id(), summary](RunObserver& o) { o.epoch_completed(id, summary); });
  }
  void settle() {
    if (settled_)
      std::exchange(settled_, nullptr)();
  }
  void do_note(const std::string& text) override {
    voice_.tell([text](RunObserver& o) { o.noted(text); });
  }

  void do_save_checkpoint(const StateDict& state, const engine::TrainingPosition& position,
                          int keep) override {
    const Timeline::Span span(&session_.timeline_, Phase::kSaving);
    // Fitted before the first step, and the same ever after.
    if (!preprocessing_)
      preprocessing_ = trial_.preprocessing();
    const std::uint64_t told = session_.announcer_.mark();
    saver_.save(state, [this, position, keep, told](const StateDict& copy) {
      write_checkpoint(copy, position, keep, told);
    });
  }

  /// On the writer's thread. `told` marks what was told before the state was copied.
  void write_checkpoint(const StateDict& state, const engine::TrainingPosition& position, int keep,
                        std::uint64_t told) {
    // The history must not be behind the checkpoint, or a resumed run would have a gap in it.
    session_.announcer_.wait_for(told);
    std::string history;
    session_.audience_.between_calls([&] {
      session_.history_.sync();
      history = session_.history_.text_of(trial_.id().name, position.epochs_done);
    });
    StateDict complete = state;
    complete.put("preprocessing", *preprocessing_);
    complete.put("run", session_.marks_of_run(history));
    const std::string path = store_.save(complete, position, keep).string();
    session_.announcer_.tell(
        [id = trial_.id(), path](RunObserver& o) { o.checkpoint_saved(id, path); });
  }

  std::optional<StateDict> do_resume_state() override {
    if (!loaded_)
      return std::nullopt;
    return loaded_->state;
  }

  std::string do_last_checkpoint() const override {
    saver_.wait();
    return store_.newest().string();
  }

  /// Then every buffer of the batch pipeline is in use, and the allocator has seen some steps.
  static constexpr int kStepsToSettle = 12;

  RunSession& session_;
  Trial& trial_;
  engine::Settled settled_;
  int steps_made_ = 0;
  CheckpointStore store_;
  std::optional<CheckpointStore::Loaded> loaded_;
  std::optional<StateDict> preprocessing_;
  StepProgress last_step_;
  Announcer::Training voice_;
  mutable StateSaver saver_;  // last: what it writes needs the others
};

RunSession::RunSession(const Runtime& runtime, ResolvedWorkflow workflow, const RunOptions& options,
                       RunFolder folder, bool resumed)
    : baseline_memory_(resident_memory_bytes()),
      runtime_(runtime),
      options_(options),
      folder_(std::move(folder)),
      resumed_(resumed),
      ingredients_(runtime, std::move(workflow)),
      budget_(budget_for(ingredients_.workflow())),
      timeline_(!options.trace.empty()),
      history_(folder_.history()),
      events_(folder_.events()),
      observers_(ingredients_.make_observers()),
      announcer_(audience_) {
  audience_.add(history_);
  audience_.add(events_);
  for (RunObserver* observer : options.observers)
    audience_.add(*observer);
  for (const auto& observer : observers_)
    audience_.add(*observer);
}

RunSession::~RunSession() = default;

engine::StageGraph RunSession::stages(const ResolvedWorkflow& workflow, RunSession* session) {
  const auto use = [&](const char* slot) { return text_at_path(workflow.resolved, {slot, "use"}); };
  const auto each = [&](const char* slot) {
    std::string names;
    for (const nlohmann::json& one : workflow.resolved.value(slot, nlohmann::json::array()))
      names += (names.empty() ? "" : ", ") + one.at("use").get<std::string>();
    return names;
  };
  std::string training = "train and validate: " + use("model");
  const auto add = [&](const std::string& title, const std::string& text) {
    if (!text.empty())
      training += "\n" + title + ": " + text;
  };
  add("transforms", each("transforms"));
  add("loss", workflow.resolved.contains("loss") ? use("loss") : "by the target");
  add("optimizer", use("optimizer"));
  add("schedule", use("schedule"));
  add("metrics", each("metrics"));
  const auto work = [session](void (RunSession::*stage)()) {
    return [session, stage](std::stop_token) { (session->*stage)(); };
  };
  engine::StageGraph graph;
  graph.add("data", {}, work(&RunSession::load_data), "data: " + use("data"));
  graph.add("split", {"data"}, work(&RunSession::split), "split: " + use("validation"));
  graph.add("train", {"split"}, work(&RunSession::train_folds), training);
  graph.add("final", {"train"}, work(&RunSession::train_final), "final model");
  graph.add("report", {"final"}, work(&RunSession::write_result), "result and report");
  return graph;
}

RunOutcome RunSession::run() {
  /// However the run ends, nobody is told anything after it has.
  struct Settled {
    ~Settled() { announcer.settle(); }
    Announcer& announcer;
  };
  const Settled settled{announcer_};
  // Now, when it cannot be written, rather than after a long run. A pipe is opened once.
  std::error_code error;
  if (!options_.trace.empty() && !fs::is_other(options_.trace, error))
    write_file_atomically(options_.trace, "");
  announcer_.tell([&](RunObserver& o) {
    o.run_started(ingredients_.workflow().name, folder_.path().string());
  });
  const engine::StageGraph graph = stages(ingredients_.workflow(), this);
  std::exception_ptr failure;
  try {
    budget_.run([&] { graph.run(options_.stop); });
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    if (!options_.trace.empty())
      write_trace(timeline_, options_.trace);
  } catch (const StorageError&) {
    if (!failure)
      throw;  // else what ended the run is the news
  }
  if (failure)
    std::rethrow_exception(failure);
  if (!result_)
    throw Interrupted("stopped before the run was finished");
  announcer_.tell([&](RunObserver& o) { o.run_completed(folder_.path().string()); });
  announcer_.drain();
  return {folder_.path(), *result_};
}

void RunSession::load_data() {
  const Timeline::Span span(&timeline_, Phase::kLoading);
  ingredients_.open_data();
  const nlohmann::json& resolved = ingredients_.workflow().resolved;
  const PluginLock plugins =
      PluginLock::of(used_plugins(runtime_.catalog(), runtime_.schemas(), resolved));
  environment_ = environment_record(
      plugins, resolved, {ingredients_.data().content_hash(), ingredients_.rows().rows()},
      budget_.workers());
  document_ = document_identity(runtime_.registry(), resolved);
  if (resumed_)
    compare_with_beginning();
  nlohmann::json conditions = environment_;
  conditions["document"] = document_;
  write_file_atomically(folder_.environment(), conditions.dump(2) + "\n");
  write_file_atomically(folder_.plugin_lock(), plugins.text());
  // Now with what the document left open.
  write_file_atomically(folder_.document(), write_workflow(resolved));
  for (const std::string& choice : ingredients_.choices()) {
    announcer_.tell([choice](RunObserver& o) { o.noted(choice); });
  }
  if (environment_.at("blas") == "reference") {
    announcer_.tell([](RunObserver& o) {
      o.noted(
          "warning: the reference BLAS is in use, which is 10 to 20 times slower than OpenBLAS; "
          "install libopenblas0-pthread");
    });
  }
}

void RunSession::compare_with_beginning() {
  const std::optional<nlohmann::json> before = beginning_of(folder_, [&](const std::string& text) {
    announcer_.tell([text](RunObserver& o) { o.noted(text); });
  });
  if (!before)
    return;  // nothing was trained, so there is nothing to mix
  expect_same_document(folder_.path(), before->at("document"), document_, folder_);
  check_environment(*before);
}

void RunSession::check_environment(const nlohmann::json& before) {
  const std::vector<std::string> found = differences(before, environment_);
  if (found.empty())
    return;
  std::string text;
  for (const std::string& difference : found)
    text += (text.empty() ? "" : "; ") + difference;
  if (!options_.allow_differences) {
    throw StorageError(folder_.path().string() +
                       ": this run began under other conditions: " + text +
                       "; its result would differ from an uninterrupted run's. Restore them, or "
                       "pass --allow-differences");
  }
  const std::int64_t rows = environment_.at("data_rows").get<std::int64_t>();
  const std::int64_t rows_before = before.value("data_rows", rows);
  if (rows != rows_before) {
    throw StorageError(folder_.path().string() + ": the run began with " +
                       std::to_string(rows_before) + " rows of data, and now there are " +
                       std::to_string(rows) +
                       ": it cannot go on with other rows. Restore the data, or start a new run: "
                       "workflow-runner run " +
                       folder_.document().string());
  }
  announcer_.tell([text](RunObserver& o) { o.noted("resumed under other conditions: " + text); });
}

StateDict RunSession::marks_of_run(const std::string& history) const {
  nlohmann::json conditions = environment_;
  conditions["document"] = document_;
  StateDict marks;
  marks.put("conditions", std::move(conditions));
  marks.put("history", nlohmann::json(history));
  return marks;
}

void RunSession::recognize(const StateDict& state, const TrialId& id, const fs::path& place) {
  const StateDict& marks = state.part("run");
  expect_same_document(place, marks.value("conditions").at("document"), document_, folder_);
  bool is_mended = false;
  audience_.between_calls(
      [&] { is_mended = history_.restore(id.name, marks.value("history").get<std::string>()); });
  if (is_mended) {
    announcer_.tell([text = folder_.history().string() + ": the rows of " + id.name +
                            " were lost or changed, and are restored from " +
                            place.string()](RunObserver& o) { o.noted(text); });
  }
}

void RunSession::split() {
  const Timeline::Span span(&timeline_, Phase::kLoading);
  ingredients_.make_plan();
}

bool RunSession::has_single_model() const {
  return ingredients_.plan().refit || ingredients_.plan().folds.size() == 1;
}

std::vector<std::string> RunSession::trial_names() const {
  const ValidationPlan& plan = ingredients_.plan();
  if (!plan.refit && plan.folds.size() == 1)
    return {"final"};
  std::vector<std::string> names;
  for (const Fold& fold : plan.folds)
    names.push_back(fold.name);
  if (plan.refit)
    names.push_back("final");
  return names;
}

void RunSession::train_folds() {
  const ValidationPlan& plan = ingredients_.plan();
  const std::vector<std::string> names = trial_names();
  folds_.resize(plan.folds.size());
  TrialMemory memory(
      resident_memory_bytes,
      options_.available_memory ? options_.available_memory
                                : [] { return engine::available_memory_bytes(); },
      [&](const std::string& text) { announcer_.tell([text](RunObserver& o) { o.noted(text); }); });
  const engine::TrialLimits limits{static_cast<std::size_t>(budget_.workers()),
                                   [&] { return memory.fits(); }};
  engine::run_trials(plan.folds.size(), limits, [&](std::size_t i, const engine::Settled& settled) {
    if (options_.stop.stop_requested())
      throw Interrupted("stopped before " + names[i] + " began");
    const TrialId id{names[i], static_cast<std::int64_t>(i),
                     static_cast<std::int64_t>(names.size())};
    const bool is_result = !plan.refit && plan.folds.size() == 1;
    memory.begin();
    folds_[i] = run_trial(id,
                          {plan.folds[i].training, plan.folds[i].validation, 0,
                           is_result ? plan.test : std::vector<std::int64_t>()},
                          is_result, [&] {
                            memory.settle();
                            settled();
                          });
  });
}

void RunSession::train_final() {
  const ValidationPlan& plan = ingredients_.plan();
  if (!plan.refit)
    return;
  std::int64_t epochs = ingredients_.training_plan().epochs;
  if (folds_.front().selects_best) {
    double sum = 0;
    for (const Finished& fold : folds_)
      sum += fold.result.at("best_epoch").get<double>();
    epochs = std::max<std::int64_t>(1, std::llround(sum / static_cast<double>(folds_.size())));
  }
  const auto index = static_cast<std::int64_t>(plan.folds.size());
  final_ = run_trial({"final", index, index + 1},
                     {all_rows_but(ingredients_.rows().rows(), plan.test), {}, epochs, plan.test},
                     true, nullptr);
}

std::optional<RunSession::Finished> RunSession::finished_before(const TrialId& id) {
  const fs::path place = folder_.trial_result(id.name);
  if (!resumed_ || !fs::exists(place))
    return std::nullopt;
  StateDict saved;
  try {
    saved = read_state_folder(place);
  } catch (const StorageError& error) {
    // Its checkpoints are still there, or it is trained from its beginning: both give the same.
    announcer_.tell([text = "the result of " + id.name +
                            " cannot be read, so its training goes on from its checkpoints: " +
                            error.what()](RunObserver& o) { o.noted(text); });
    return std::nullopt;
  }
  recognize(saved, id, place);
  return finished_from(saved);
}

RunSession::Finished RunSession::finished_from(const StateDict& saved) const {
  Finished finished;
  finished.result = saved.value("result");
  finished.selects_best = saved.value("selects_best").get<bool>();
  finished.report_metrics = ingredients_.make_report_metrics();
  const StateDict& metrics = saved.part("report_metrics");
  for (std::size_t i = 0; i < finished.report_metrics.size(); ++i) {
    const std::string key = std::to_string(i);
    if (metrics.has_part(key))
      finished.report_metrics[i].computer->load_state(metrics.part(key));
  }
  return finished;
}

/// Adds to what could not be written how the run is finished once that is mended.
template <typename Work>
void RunSession::saying_how_to_go_on(Work&& work) const {
  try {
    std::forward<Work>(work)();
  } catch (const StorageError& error) {
    throw StorageError(std::string(error.what()) +
                       "; when this is mended: workflow-runner resume " + folder_.path().string());
  }
}

/// Adds to what a component's failure says the training and the step it happened in: a model, a
/// loss or a gradient strategy knows neither.
template <typename Work>
auto RunSession::saying_where(const Context& context, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const PluginError& error) {
    throw PluginError(std::string(error.what()) + "; in " + context.place());
  } catch (const TrainingError& error) {
    if (context.is_named_in(error.what()))
      throw;
    throw TrainingError(std::string(error.what()) + "; in " + context.place());
  }
}

engine::TrainingResult RunSession::train_keeping_what_is_saved(Trial& trial, Context& context) {
  try {
    try {
      const engine::TrainingResult result =
          saying_where(context, [&] { return trial.train(context); });
      context.finish();
      return result;
    } catch (const Interrupted&) {
      context.finish();  // it says that what is worth keeping has been saved
      throw;
    }
  } catch (const StorageError& error) {
    // A full disk costs no more than the steps since the last checkpoint, if its owner knows how to
    // go on.
    const std::string checkpoint = context.last_checkpoint();
    throw StorageError(std::string(error.what()) + "; " +
                       (checkpoint.empty() ? "there is no checkpoint yet"
                                           : "the last good checkpoint is " + checkpoint) +
                       "; when this is mended: workflow-runner resume " + folder_.path().string());
  }
}

RunSession::Finished RunSession::run_trial(TrialId id, TrialRows rows, bool is_result,
                                           const engine::Settled& settled) {
  if (std::optional<Finished> before = finished_before(id)) {
    if (is_result)
      model_info_ = before->result.at("model_info");
    return std::move(*before);
  }
  const bool judged = !rows.validation.empty();
  const bool is_tested = !rows.test.empty();
  Trial trial(ingredients_, id, std::move(rows), &timeline_);
  Context context(*this, trial, settled);
  announcer_.tell([id](RunObserver& o) { o.trial_started(id); });
  trial.prepare(context.saved_preprocessing());
  if (id.index == 0) {  // those of other folds say the same
    for (const std::string& note : trial.notes())
      announcer_.tell([note](RunObserver& o) { o.noted(note); });
  }
  const engine::TrainingResult training = train_keeping_what_is_saved(trial, context);

  Finished finished;
  finished.selects_best = training.selects_best;
  finished.result = to_json(training);
  finished.result["name"] = id.name;
  finished.result["model_info"] = model_info(ingredients_, trial);
  finished.result["weights"] = weights_record(training);
  finished.result["transformed_target"] = trial.transforms_targets();
  std::vector<MetricValue> metrics;
  if (judged) {
    const engine::ValidationResult validation =
        saying_where(context, [&] { return trial.validate(options_.stop); });
    metrics = validation.metrics.values;
    finished.result["validation"] = to_json(validation);
  }
  finished.result["metrics"] = metrics_to_json(metrics);
  if (is_tested) {
    finished.result["test"] =
        test_record(saying_where(context, [&] { return trial.test(options_.stop); }));
  }
  StateDict report_state;
  finished.report_metrics = ingredients_.make_report_metrics();
  for (std::size_t i = 0; judged && i < finished.report_metrics.size(); ++i) {
    const StateDict state = trial.report_metrics()[i].computer->state();
    finished.report_metrics[i].computer->load_state(state);
    report_state.put(std::to_string(i), state);
  }
  if (is_result) {
    model_info_ = finished.result.at("model_info");
    saying_how_to_go_on([&] { write_model(trial); });
  }
  if (is_shown(id)) {
    const ModelDrawing drawing = drawing_of(trial.model());
    finished.result["drawing"] = {{"parts", drawing.parts}, {"svg", drawing.svg}};
  }
  StateDict record;
  record.put("result", finished.result);
  record.put("selects_best", nlohmann::json(finished.selects_best));
  record.put("report_metrics", std::move(report_state));
  std::string history;
  audience_.between_calls([&] { history = history_.text_of(id.name, training.total_epochs); });
  record.put("run", marks_of_run(history));
  const std::filesystem::path records = folder_.trial_result(id.name).parent_path();
  std::error_code error;
  std::filesystem::create_directories(records, error);
  if (error) {
    throw StorageError(records.string() + ": cannot be made for the results of trainings: " +
                       error.message() + "; make room or permit writing, then resume the run");
  }
  saying_how_to_go_on([&] { write_state_folder(folder_.trial_result(id.name), record); });

  // "Best" is said of weights that were chosen, not of the last ones.
  TrialSummary summary{training.selects_best ? training.best_epoch : 0,
                       training.total_epochs,
                       training.final_loss,
                       training.best_loss,
                       training.stop_reason,
                       metrics,
                       training.training_time_seconds};
  context.complete(summary);
  return finished;
}

void RunSession::write_model(Trial& trial) const {
  write_safetensors(folder_.weights(), {module_state(trial.model()).tensors(),
                                        {{"format", "pt"}, {"treadle", std::string(version())}}});
  StateDict preprocessing = trial.preprocessing();
  preprocessing.put(kModelChecksum, nlohmann::json(hash_file(folder_.weights())));
  write_state_folder(folder_.preprocessing(), preprocessing);
}

nlohmann::json RunSession::pooled_tables() const {
  std::vector<MetricTable> tables;
  const std::vector<Metric> report_metrics = ingredients_.make_report_metrics();
  for (std::size_t index = 0; index < report_metrics.size(); ++index) {
    const Metric& metric = report_metrics[index];
    bool any = false;
    for (const Finished& fold : folds_) {
      if (index < fold.report_metrics.size()) {
        metric.computer->merge(*fold.report_metrics[index].computer);
        any = true;
      }
    }
    if (!any)
      continue;
    for (MetricTable& table : metric.view().compute().tables)
      tables.push_back(std::move(table));
  }
  return to_json(tables);
}

bool RunSession::is_shown(const TrialId& id) const {
  return ingredients_.plan().refit ? id.name == "final" : id.index == 0;
}

ModelDrawing RunSession::drawing_of(Model& model) const {
  return options_.draw_model ? options_.draw_model(model) : ModelDrawing();
}

void RunSession::write_result() {
  announcer_.drain();  // the files are read below
  const std::vector<std::string> names = trial_names();
  const Finished& chosen = final_ ? *final_ : folds_.front();
  nlohmann::json result = chosen.result;
  result.erase("name");
  const nlohmann::json drawing = result.value("drawing", nlohmann::json::object());
  result.erase("drawing");
  result["model_path"] = has_single_model() ? folder_.weights().filename().string() : "";
  if (folds_.size() > 1) {
    nlohmann::json folds = nlohmann::json::array();
    for (const Finished& fold : folds_) {
      folds.push_back(fold.result);
      folds.back().erase("drawing");
    }
    result.update(cross_validation_summary(folds));
    result["metrics"] = result.at("mean_metrics");
    result["tables"] = pooled_tables();
  } else {
    // One fold's tables, those of the document's own metrics among them.
    result["tables"] = folds_.front().result.at("validation").at("tables");
    if (result.contains("validation"))
      result.at("validation").erase("tables");
  }
  result["judged_on"] = result.contains("test") ? "test" : "validation";
  result["metric_list"] = folds_.front().result.at("validation").at("metric_list");
  result["started_at"] = events_.started_at();
  result["task"] = ingredients_.task();
  result["choices"] = ingredients_.choices();
  if (const auto& info = chosen.result.at("model_info"); info.contains("execution"))
    result["choices"].push_back("execution: " + info.at("execution").get<std::string>());
  result["data"] = data_facts(ingredients_);
  result["environment"] = environment_;
  result["environment"]["baseline_memory_bytes"] = baseline_memory_;
  result["environment"]["peak_memory_bytes"] = peak_memory_bytes();
  result["time"] = time_record(timeline_, budget_.workers(), ingredients_.shards());
  result["extensions"] =
      ingredients_.workflow().resolved.value("extensions", nlohmann::json::object());

  saying_how_to_go_on([&] { audience_.between_calls([&] { history_.finish(names); }); });
  ReportInput report{
      ingredients_.workflow().name,
      result,
      ingredients_.workflow().resolved,
      history_.curves(names),
      {drawing.value("parts", std::vector<std::vector<std::string>>()), drawing.value("svg", "")}};
  saying_how_to_go_on([&] {
    write_file_atomically(folder_.report(), render_report(report));
    move_large_tables(result["tables"], folder_.path(), folder_.tables());
    if (result.contains("test")) {
      move_large_tables(result["test"].at("tables"), folder_.path(), folder_.tables() / "test");
    }
    if (result.contains("fold_results")) {
      for (nlohmann::json& fold : result["fold_results"]) {
        move_large_tables(fold.at("validation").at("tables"), folder_.path(),
                          folder_.tables() / fold.at("name").get<std::string>());
      }
    }
    // Last: its presence says that the run is finished.
    write_file_atomically(folder_.result(), result.dump(2) + "\n");
  });
  result_ = std::move(result);
}

}  // namespace treadle::internal
