#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/search.h>

#include "search/journal/study_identity.h"
#include "search/journal/study_journal.h"
#include "search/settings/search_settings.h"

// What people change of a search from outside. The trials that there are stay as they are: a search
// is the same with more of them.

namespace treadle {
namespace {

namespace fs = std::filesystem;

nlohmann::json search_document(const fs::path& path) {
  std::ifstream file(path);
  nlohmann::json document = parse_json(file);
  if (!document.is_object() || !document.contains("search")) {
    throw UsageError(path.parent_path().string() +
                     ": is no run that searches; its document has no \"search\"");
  }
  return document;
}

/// All but the trials: the trainings of the best one, which may be another one now. The models that
/// they have made are there until others take their place.
void remove_last_training(const RunFolder& folder) {
  fs::remove(folder.result());  // first of all: the run is unfinished from here on
  for (const fs::path& parent : {folder.fit_results(), folder.checkpoints()}) {
    std::error_code error;
    std::vector<fs::path> others;
    for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
      if (entry.path().filename() != "trials")
        others.push_back(entry.path());
    }
    for (const fs::path& other : others) {
      // At once, so that a kill leaves no half of it: what has such a name is no part of a run.
      fs::path gone = other;
      gone += ".tmp";
      fs::rename(other, gone);
      fs::remove_all(gone);
    }
  }
}

}  // namespace

void extend_search(const Runtime& runtime, const fs::path& run, std::int64_t trials,
                   const std::string& time) {
  const RunFolder folder = RunFolder::open(run);
  nlohmann::json document = search_document(folder.document());
  nlohmann::json& search = document.at("search");
  search["trials"] = search.at("trials").get<std::int64_t>() + trials;
  if (!time.empty())
    search["budget"]["time"] = time;
  // What cannot go on is refused before anything is changed.
  const ResolvedWorkflow workflow = runtime.resolve(document);
  const auto settings = internal::search_of(runtime, workflow);
  if (trials > 0 && settings->pruner_copies) {
    throw UsageError(run.string() + ": " + settings->pruner_name +
                     " makes trials of the checkpoints of others, which are gone once those have "
                     "ended; more trials need a new search");
  }
  std::optional<internal::StudyJournal> journal;  // none: not even a trial was begun
  if (fs::exists(folder.search_journal())) {
    // Which of them it maximizes stands in the journal already.
    const std::vector<bool> objectives(settings->objectives.size());
    journal.emplace(folder.search_journal(), workflow.name, settings->space, objectives,
                    internal::identity_of(workflow));
  }
  const double elapsed = journal ? journal->elapsed() : 0;
  if (!time.empty() && settings->seconds && *settings->seconds <= elapsed) {
    throw UsageError("--time " + time + ": the search has taken " +
                     std::to_string(static_cast<std::int64_t>(std::ceil(elapsed))) +
                     " s already, which count; give it more than that");
  }
  try {
    if (journal)
      journal->reopen();
    write_file_atomically(folder.document(), write_workflow(document));
    remove_last_training(folder);
  } catch (const fs::filesystem_error& error) {
    throw StorageError(std::string(error.what()) + "; make the folder writable");
  }
}

void cancel_trial(const fs::path& run, std::int64_t trial) {
  // Not locked: the run may be going on.
  if (!fs::exists(run / "workflow.json"))
    throw StorageError(run.string() + ": is not the folder of a run: it has no workflow.json");
  const nlohmann::json document = search_document(run / "workflow.json");
  const auto trials = document.at("search").at("trials").get<std::int64_t>();
  if (trial < 0 || trial >= trials) {
    throw UsageError(run.string() + ": has the trials 0 to " + std::to_string(trials - 1) +
                     ", and no trial " + std::to_string(trial));
  }
  if (fs::exists(RunFolder::result_of(run))) {
    throw UsageError(run.string() +
                     ": the search has ended, and its trials with it; there is nothing to cancel");
  }
  const fs::path file = RunFolder::cancelled_of(run, trial);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  write_file_atomically(file, "");
}

}  // namespace treadle
