#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/search/study_storage.h>

#include "search/journal/study_description.h"

namespace treadle::internal {

class RunParts;
struct SearchSettings;

/// The part of a study that several processes share: which of them runs which job, and the results
/// of the jobs. Not thread-safe. All calls throw StorageError, as those of StudyStorage do.
class SharedStudy {
 public:
  /// `lease`: seconds after which a silent worker loses its job.
  SharedStudy(std::shared_ptr<StudyStorage> storage, std::string study, double lease);

  /// Creates the study, or finds an existing one: its description. Throws StorageError if that has
  /// another identity.
  StudyDescription open(const StudyDescription& description);
  const std::string& name() const { return study_; }
  double lease() const { return lease_; }

  // Jobs. Each belongs to this process, to another one, or to none.
  bool is_own(std::int64_t job) const { return is_own(job, true); }
  bool is_lost(std::int64_t job) const { return is_own(job, false); }
  /// Whether the job is this process's now.
  bool claim(std::int64_t job);
  /// Leaves a job to others, until it is claimed.
  void leave(std::int64_t job) { owned_[job] = false; }
  /// Prolongs the lease of a job of this process, which may have lost it.
  void renew(std::int64_t job);
  /// Gives up all jobs of this process.
  void release();
  /// Claims the job if necessary, and stores its result. False: another process has it.
  bool finish(std::int64_t job, const nlohmann::json& result);
  /// How many jobs this process has finished.
  std::int64_t finished() const { return finished_; }

  /// Ends the study early: returns the end that stands, in the form of ended_by_time().
  nlohmann::json end(const nlohmann::json& how) { return known(storage_->end(study_, how)); }
  nlohmann::json ended() { return known(storage_->ended(study_)); }

  /// Reads the new results.
  void fetch();
  /// Of a job, as of the last fetch(); null: none.
  const nlohmann::json* result(std::int64_t job) const;

 private:
  /// Throws StorageError for an end in another form.
  nlohmann::json known(nlohmann::json ended) const;
  bool is_own(std::int64_t job, bool expected) const;

  const std::shared_ptr<StudyStorage> storage_;
  const std::string study_;
  const std::string worker_;  // unique among all machines
  const double lease_;
  std::map<std::int64_t, bool> owned_;  // of jobs without result: by this process, or another
  std::int64_t finished_ = 0;
  std::int64_t sequence_ = 0;
  std::map<std::int64_t, nlohmann::json> results_;
};

/// Creates the study of a search with a storage, or joins it, and reads the results. Throws
/// StorageError if the study belongs to another search or began under other conditions, which the
/// run may allow.
SharedStudy open_shared_study(RunParts& run, const SearchSettings& settings);

/// Throws the StorageError of a process that needs the checkpoints of `folder`, which is on another
/// machine.
[[noreturn]] void fail_without_folder(const SearchSettings& settings, const std::string& folder);

}  // namespace treadle::internal
