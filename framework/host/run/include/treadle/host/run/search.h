#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/run_options.h>

/// Searches (`search` in a document) beside run_workflow(), which runs them.
namespace treadle {

class Runtime;

/// Lets a search that has ended, or was stopped, go on: with so many more trials, and with this
/// time budget ("2h"; empty: as it was). resume_run() then does so; the model is trained again if
/// another trial is the best. Throws UsageError for a run that did not search.
void extend_search(const Runtime& runtime, const std::filesystem::path& run, std::int64_t trials,
                   const std::string& time);

/// The work of a process in the search of another one.
struct JoinedSearch {
  std::string study;
  std::int64_t jobs = 0;  ///< that it has done
};

/// Takes trials of a search that another process has begun in a storage, until that search has
/// ended: "sqlite:study.db", "journal:study.jsonl", "postgresql://host/database". `study` may be
/// empty where the storage has one only. Trials are kept in the folder of the other run where that
/// can be reached, so that any process goes on with what another has left; else in a temporary one.
/// Throws UsageError where there is no such study.
JoinedSearch join_search(const Runtime& runtime, const std::string& storage,
                         const std::string& study, const RunOptions& options = {});

/// Cancels a trial of a search, which may be running in another process: it ends with its epoch, or
/// before it begins, as a failed one. Throws UsageError for a run that does not search.
void cancel_trial(const std::filesystem::path& run, std::int64_t trial);

/// Checks the document's `search` without reading data: throws a DocumentError for values of its
/// space that no document may have. Without a search, does nothing.
void expect_search(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// Notes of `check` and of a run on the document's `search`, which are no problems: a pruner
/// that cannot end a trial before its last epoch. Throws as expect_search(); nothing without a
/// search.
std::vector<std::string> notes_on_search(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// The points of all trials of the document's `search` as far as no result decides on them: those
/// that it would try if none of its trials ended. Each has its values by path, as `search.initial`
/// takes them, and a "description" of them for readers. Fewer than trials where the tuner has no
/// more points. Reads no data. Throws as expect_search(); UsageError without a search.
nlohmann::json search_points(const Runtime& runtime, const ResolvedWorkflow& workflow);

}  // namespace treadle
