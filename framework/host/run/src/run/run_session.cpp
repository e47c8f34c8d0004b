#include "run/run_session.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/host/run/shared_conditions.h>

#include "context/shared_run.h"
#include "description/described_rows.h"
#include "events/trace.h"
#include "fit/fit_runner.h"
#include "predict/explained_rows.h"
#include "ranks/divided_fits.h"
#include "ranks/fit_division.h"
#include "result/json_path.h"
#include "run/run_result.h"
#include "runtime/run_record.h"
#include "search/settings/search_run.h"

// A run as four stages: data, split, fits, report. They follow one another; they are a graph
// because it is drawn (`workflow-runner graph`), and because a stop leaves out the stages that have
// not begun.
//
// run() ends in one of three ways. With an outcome, after result.json has been written and the last
// event delivered. With the failure of a stage. Or with Interrupted, when a stop left out a stage
// without a failure. In all cases no observer is called after it has returned.

namespace treadle::internal {

namespace fs = std::filesystem;

namespace {

/// Whether the storage has results of the study already.
bool has_results(const SearchSettings& search) {
  return search.storage && search.storage->description(search.study) &&
         !search.storage->results(search.study, 0).empty();
}

/// As `tune --join` takes it. An address may have a password, so of a server its kind alone.
std::string storage_text(const nlohmann::json& slot) {
  const auto kind = slot.at("use").get<std::string>();
  const auto location = slot.at("location").get<std::string>();
  return location.find("://") == std::string::npos ? kind + ":" + location : kind;
}

}  // namespace

RunSession::RunSession(const Runtime& runtime, ResolvedWorkflow workflow, const RunOptions& options,
                       RunFolder folder, bool resumed)
    : baseline_memory_(resident_memory_bytes()),
      run_(runtime, std::move(workflow), options, std::move(folder), resumed),
      search_settings_(search_of(runtime, run_.workflow())) {}

engine::StageGraph RunSession::stages(const ResolvedWorkflow& workflow, RunSession* session) {
  const auto use = [&](const char* slot) { return text_at_path(workflow.resolved, {slot, "use"}); };
  const auto each = [&](const char* slot) {
    std::string names;
    for (const nlohmann::json& one : workflow.resolved.value(slot, nlohmann::json::array()))
      names += (names.empty() ? "" : ", ") + one.at("use").get<std::string>();
    return names;
  };
  // Read from the document alone, since a picture is drawn without data and without plugins' code.
  std::string fits = "fits: train and validate " + use("model");
  const auto add = [&](const std::string& title, const std::string& text) {
    if (!text.empty())
      fits += "\n" + title + ": " + text;
  };
  add("transforms", each("transforms"));
  add("loss", workflow.resolved.contains("loss") ? use("loss") : "by the target");
  for (const char* const slot : {"optimizer", "schedule"}) {
    if (workflow.resolved.contains(slot))
      add(slot, use(slot));
  }
  add("metrics", each("metrics"));
  add("baselines", each("baselines"));
  if (workflow.resolved.contains("search")) {
    const nlohmann::json& search = workflow.resolved.at("search");
    fits = "search: " + std::to_string(search.at("trials").get<std::int64_t>()) + " trials by " +
           text_at_path(search, {"tuner", "use"}) + "\n" + fits;
  }
  const auto work = [session](void (RunSession::*stage)()) {
    return [session, stage](std::stop_token) { (session->*stage)(); };
  };
  engine::StageGraph graph;
  graph.add("data", {}, work(&RunSession::load_data), "data: " + use("data"));
  graph.add("split", {"data"}, work(&RunSession::split),
            "split: " + (workflow.resolved.contains("validation") ? use("validation")
                                                                  : "none; no rows validate"));
  graph.add("fits", {"split"}, work(&RunSession::run_fits), fits);
  graph.add("report", {"fits"}, work(&RunSession::write_result), "result and report");
  return graph;
}

RunOutcome RunSession::run() {
  /// However the run ends, no observer is called after it has.
  struct SettlesEvents {
    ~SettlesEvents() { dispatcher.settle(); }
    EventDispatcher& dispatcher;
  };
  const SettlesEvents settles_events{run_.log.dispatcher()};
  const fs::path& trace = run_.options.trace;
  // Now, when it cannot be written, rather than after a long run. A pipe is opened once.
  std::error_code error;
  if (!trace.empty() && !fs::is_other(trace, error))
    write_file_atomically(trace, "");
  run_.log.notify([name = run_.workflow().name, folder = run_.folder.path().string()](
                      RunObserver& o) { o.run_started(name, folder); });
  const engine::StageGraph graph = stages(run_.workflow(), this);
  std::exception_ptr failure;
  // The trace is written after a failure, too: it may show why. So the failure waits until then.
  try {
    run_.budget.run([&] { graph.run(run_.stop_between_steps()); });
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    if (!trace.empty())
      write_trace(run_.timeline, trace, run_.hosts);
  } catch (const StorageError&) {
    if (!failure)
      throw;  // else what ended the run is the news
  }
  if (failure)
    std::rethrow_exception(failure);
  if (!has_ended_)
    throw Interrupted("stopped before the run was finished");
  run_.log.notify(
      [folder = run_.folder.path().string()](RunObserver& o) { o.run_completed(folder); });
  // run_completed must have reached events.jsonl: an event that cannot be written is an error of
  // the run.
  run_.log.drain();
  return {run_.folder.path(), std::move(result_)};
}

std::int64_t RunSession::join() {
  run();
  return study_->jobs_done();
}

void RunSession::load_data() {
  run_.open_data([this](DocumentComponents& components) {
    run_.options.communicator == nullptr
        ? find_batch_size(components)
        : find_batch_size_together(components, *run_.options.communicator);
  });
}

void RunSession::split() {
  const Timeline::Span span(&run_.timeline, Phase::kLoading);
  // After the data is open, which may have decided the task; before the fits, which only read the
  // plan.
  DocumentComponents& components = run_.components();
  components.make_plan();
  if (explains(run_.workflow()))
    expect_explainable(components);
  for (const std::string& note : notes_on_data(components))
    run_.log.note(note);
  for (const std::string& note : notes_on_split(run_.runtime, components))
    run_.log.note(note);
  for (const std::string& note : notes_on_samples(components))
    run_.log.note(note);
  if (run_.options.notes_leaks && !run_.dataset().is_stream()) {
    for (const std::string& note : notes_on_leaks(components))
      run_.log.note(note);
  }
  if (run_.options.communicator != nullptr)
    divide_work();
  if (run_.divides_fits && !run_.options.is_first_rank())  // which has the plan
    return;
  if (search_settings_) {
    for (const std::string& note : search_settings_->notes)
      run_.log.note(note);
    has_earlier_results_ = has_results(*search_settings_);
    auto ensemble = search_settings_->ensemble;
    study_.emplace(run_, *std::move(search_settings_), components.plan());
    if (ensemble)
      ensemble_.emplace(run_, *study_, *std::move(ensemble), components.plan());
  } else {
    std::vector<Baseline> baselines = baselines_of(run_.runtime, run_.workflow());
    // Trained last: a mistake in one is found before the first step. A stream is not read for that.
    if (!run_.resumed && !run_.dataset().is_stream())
      expect_networks(run_.runtime, run_.workflow(), baselines, run_.dataset(), components);
    using Models = CrossValidation::ModelsOfFolds;
    plan_.emplace(components.plan(), components.training_plan(), std::move(baselines), std::nullopt,
                  nullptr, components.outputs_need_folds() ? Models::kKept : Models::kLeft);
  }
}

void RunSession::divide_work() {
  const DocumentComponents& components = run_.components();
  std::optional<std::int64_t> trials;
  if (search_settings_)
    trials = std::min(search_settings_->parallel, search_settings_->trials);
  const FitDivision division =
      divide(run_.workflow().resolved.at("resources").value("divide", "auto"),
             run_.options.communicator->world_size(), fits_at_once(components.plan(), trials),
             components.shards());
  run_.divides_fits = division.divides_fits;
  if (division.text.empty())
    return;
  if (!division.divides_fits && search_settings_)
    expect_shared_steps(run_.workflow().resolved);
  run_.log.note(division.text);
}

void RunSession::run_fits() {
  const RunDevice& device = run_.components().device();
  if (!device.device().is_cpu())
    device.backend->reset_peak(device.device());
  if (!run_.divides_fits)
    return run_plan(nullptr);
  // The settings are the study's, where there is one: in rank 0.
  DividedFits divided(run_, study_             ? study_->memory_limit()
                            : search_settings_ ? search_settings_->memory
                                               : std::nullopt);
  try {
    divided.run({.run = [this](FitLender& lender) { run_plan(&lender); },
                 .is_repeated = [this] { return has_next_best(); }});
  } catch (...) {
    is_repeated_ = divided.is_repeated();
    throw;
  }
}

void RunSession::run_plan(FitLender* lender) {
  if (!study_)
    return FitRunner(run_, *plan_, {}, lender).run();
  run_search(run_, *study_, ensemble_ ? static_cast<FitPlanner&>(*ensemble_) : *study_, lender);
  note_ended_study();
}

/// A study that had ended before this run has its trials, and looks like a search that took no
/// time.
void RunSession::note_ended_study() {
  const bool was_over = has_earlier_results_ && study_->jobs_done() == 0 && study_->has_best_run();
  if (!was_over || run_.resumed)
    return;
  const nlohmann::json& search = run_.workflow().resolved.at("search");
  run_.log.note("search: the study " + quote_text(search.value("study", run_.workflow().name)) +
                " in " + storage_text(search.at("storage")) +
                " had ended before; these are its trials, and its best was trained once more. Go "
                "on with: tune --resume " +
                run_.folder.path().string() +
                " --add-trials N. Begin another one with: --set search.study=NAME");
}

void RunSession::write_result() {
  ProcessFacts facts{baseline_memory_};
  if (!run_.hosts.empty())  // in all processes, before one of them can fail
    facts.ranks = times_by_rank(*run_.options.communicator, time_of(run_));
  run_.log.drain();  // the files are read
  has_ended_ = true;
  if (!run_.options.is_first_rank())
    return;
  if (study_ && !study_->has_best_run())  // another process has the result
    return;
  result_ = write_run_result(run_, study_ ? study_->best_run() : *plan_,
                             study_ ? &*study_ : nullptr, ensemble_ ? &*ensemble_ : nullptr, facts);
}

}  // namespace treadle::internal
