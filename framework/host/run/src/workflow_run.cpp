#include <treadle/host/run/workflow_run.h>

#include <fstream>
#include <optional>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>

#include "run_files.h"
#include "run_session.h"
#include "saved_model.h"
#include "trace.h"

namespace treadle {

RunOutcome run_workflow(const Runtime& runtime, const ResolvedWorkflow& workflow,
                        const RunOptions& options) {
  RunFolder folder = RunFolder::create(options.output, workflow.name);
  // First of all: from here on a killed run can be resumed.
  write_file_atomically(folder.document(), write_workflow(workflow.resolved));
  const std::filesystem::path path = folder.path();
  std::optional<internal::RunSession> session;
  try {
    session.emplace(runtime, workflow, options, std::move(folder), /*resumed=*/false);
    return session->run();
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    // What failed before its first step would fail again: there is nothing to keep.
    std::error_code ignored;
    if (!session || !session->has_trained())
      std::filesystem::remove_all(path, ignored);
    throw;
  }
}

RunOutcome resume_run(const Runtime& runtime, const std::filesystem::path& path,
                      const RunOptions& options) {
  RunFolder folder = RunFolder::open(path);
  if (std::filesystem::exists(folder.result())) {
    std::ifstream file(folder.result());
    nlohmann::json result = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!result.is_discarded()) {
      if (std::filesystem::exists(folder.weights()))
        internal::read_preprocessing(folder.path());  // is what it left behind still good?
      // Nobody did anything: a file that says so, where one is expected.
      if (!options.trace.empty())
        internal::write_trace(Timeline(true), options.trace);
      return {folder.path(), std::move(result)};
    }
  }
  internal::expect_plugins_of_run(runtime.catalog(), folder.path());
  ResolvedWorkflow workflow = runtime.read(folder.document());
  internal::RunSession session(runtime, std::move(workflow), options, std::move(folder),
                               /*resumed=*/true);
  return session.run();
}

std::vector<ReportInput::Curve> read_history(const std::filesystem::path& folder) {
  return internal::HistoryFile::read(RunFolder::history_of(folder));
}

std::string stage_picture(const ResolvedWorkflow& workflow) {
  return internal::RunSession::stages(workflow, nullptr).dot(workflow.name);
}

}  // namespace treadle
