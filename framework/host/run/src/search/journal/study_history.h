#pragma once

#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "search/budget/search_time.h"
#include "search/journal/shared_study.h"
#include "search/journal/study_journal.h"
#include "search/study/job_result.h"
#include "search/study/study_trial.h"

namespace treadle::internal {

/// The ends of a study's jobs: in the journal of the run, and in the storage if processes share the
/// study. Whether a job was ended by an earlier process, by another one or too late by this one,
/// its end is the one that find_end() returns.
///
/// Not thread-safe. All calls throw StorageError.
class StudyHistory {
 public:
  struct KnownEnd {
    JobResult result;
    bool is_new = false;  ///< it is not from an earlier process
  };

  /// Borrows the first three. `expected`: how many numbers a result of the storage has.
  StudyHistory(StudyJournal& journal, SharedStudy* shared, const SearchTime& time,
               ExpectedResult expected);

  StudyJournal& journal() { return journal_; }
  /// Null: one process searches.
  SharedStudy* shared() const { return shared_; }
  const SearchTime& time() const { return time_; }

  /// The end of the newest job of a trial. Nothing: it has to be trained. One of the storage is
  /// written to the journal.
  std::optional<KnownEnd> find_end(const StudyTrial& trial);
  /// Ends a job. False: another process has taken the job over, and its result counts.
  bool end(std::int64_t job, const JobResult& result);
  /// Ends a job without training, as every process does by itself.
  void end_untrained(std::int64_t job, const JobResult& result);
  /// Ends the study early, in the form of ended_by_time(), unless that was done.
  void end_early(const nlohmann::json& how);
  /// How the study was ended early, by whichever process; null: it was not.
  const nlohmann::json& find_early_end();

 private:
  StudyJournal& journal_;
  SharedStudy* const shared_;
  const SearchTime& time_;
  const ExpectedResult expected_;
};

}  // namespace treadle::internal
