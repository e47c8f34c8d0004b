#include <treadle/host/record/history_file.h>
#include <treadle/host/run/workflow_run.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_text.h>

#include "context/continuation.h"
#include "context/shared_run.h"
#include "events/trace.h"
#include "model/saved_model.h"
#include "run/run_session.h"

namespace treadle {

namespace {

/// Nothing: the last training of a search failed, and the run is to be resumed, which trains the
/// next best trial.
std::optional<RunOutcome> outcome_of(internal::RunSession& session) {
  try {
    return session.run();
  } catch (const TrainingError&) {
    if (!session.has_next_best())
      throw;
  }
  return std::nullopt;
}

/// Nothing where the file was cut off: the run is then ended once more.
std::optional<RunResult> whole_result(const RunFolder& folder) {
  std::ifstream file(folder.result());
  const nlohmann::json stored = parse_json(file);
  if (stored.is_discarded())
    return std::nullopt;
  return run_result_from(stored, folder.result().string());
}

/// Runs in a new folder, which goes away again where the run fails by itself before its first step:
/// it would fail again, and there is nothing to keep. `begin` writes what the run begins with.
template <typename Begin>
RunOutcome run_in_new_folder(const Runtime& runtime, const ResolvedWorkflow& workflow,
                             const RunOptions& options, bool resumes, Begin&& begin) {
  RunFolder folder = RunFolder::create(options.output, workflow.name);
  const std::filesystem::path path = folder.path();
  std::optional<internal::RunSession> session;
  try {
    begin(folder);
    session.emplace(runtime, workflow, options, std::move(folder), resumes);
    if (std::optional<RunOutcome> outcome = outcome_of(*session))
      return *std::move(outcome);
  } catch (const Interrupted&) {
    throw;
  } catch (const CommunicationError&) {
    throw;  // the other process may be started again, and the run go on
  } catch (...) {
    std::error_code ignored;
    if (!session || !session->has_trained())
      std::filesystem::remove_all(path, ignored);
    throw;
  }
  session.reset();  // which has the folder
  return resume_run(runtime, path, options);
}

void write_document(const RunFolder& folder, const ResolvedWorkflow& workflow) {
  write_file_atomically(folder.document(), write_workflow(workflow.resolved));
}

}  // namespace

RunOutcome run_workflow(const Runtime& runtime, const ResolvedWorkflow& workflow,
                        const RunOptions& options) {
  // First of all the document: from here on a killed run can be resumed.
  return run_in_new_folder(runtime, workflow, options, /*resumes=*/false,
                           [&](const RunFolder& folder) { write_document(folder, workflow); });
}

RunOutcome continue_run(const Runtime& runtime, const std::filesystem::path& from,
                        std::span<const std::string> overrides, const RunOptions& options) {
  std::optional<RunFolder> before(
      internal::open_together(from, options));  // nobody else may be working on it
  const ResolvedWorkflow workflow = internal::read_run_document(runtime, before->path(), overrides);
  return run_in_new_folder(runtime, workflow, options, /*resumes=*/true,
                           [&](const RunFolder& folder) {
                             internal::begin_from(*before, runtime, workflow, folder);
                             before.reset();
                             // Last: without it nobody takes the folder for a run's.
                             write_document(folder, workflow);
                           });
}

RunOutcome resume_run(const Runtime& runtime, const std::filesystem::path& path,
                      const RunOptions& options) {
  RunFolder folder = internal::open_together(path, options);
  if (std::filesystem::exists(folder.result())) {
    if (std::optional<RunResult> result = whole_result(folder)) {
      // Is what it left behind still good?
      if (std::filesystem::exists(folder.weights()))
        internal::read_preprocessing(folder.path());
      for (const std::filesystem::path& fold : internal::folds_in(folder.path()))
        internal::read_preprocessing(fold);
      // Nothing ran: an empty trace, where one is expected.
      if (!options.trace.empty())
        internal::write_trace(Timeline(true), options.trace);
      return {folder.path(), *std::move(result)};
    }
  }
  std::vector<std::string> overrides;
  if (!options.device.empty())
    overrides.push_back(internal::device_override(options.device));
  ResolvedWorkflow workflow = internal::read_run_document(runtime, folder.path(), overrides);
  {
    internal::RunSession session(runtime, std::move(workflow), options, std::move(folder),
                                 /*resumed=*/true);
    if (std::optional<RunOutcome> outcome = outcome_of(session))
      return *std::move(outcome);
  }
  return resume_run(runtime, path, options);
}

std::vector<TrainingCurve> read_history(const std::filesystem::path& folder) {
  return curves_of(HistoryFile::read(RunFolder::history_of(folder)));
}

std::string stage_picture(const ResolvedWorkflow& workflow) {
  return internal::RunSession::stages(workflow, nullptr).dot(workflow.name);
}

}  // namespace treadle
