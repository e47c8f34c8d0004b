#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/search/study_storage.h>

#include "search/journal/study_description.h"

namespace treadle::internal {

/// The part of a study that several processes share: which of them does which job, and what the
/// jobs came to. Not thread-safe. All calls throw StorageError as those of StudyStorage do.
class SharedStudy {
 public:
  /// `lease`: seconds after which a worker that was not heard of has lost its job.
  SharedStudy(std::shared_ptr<StudyStorage> storage, std::string study, double lease);

  /// Makes the study, or finds the one there is: its description. Throws StorageError where its
  /// identity is another one's.
  StudyDescription open(const StudyDescription& description);

  bool claim(std::int64_t job) { return storage_->claim(study_, job, worker_, lease_); }
  bool renew(std::int64_t job) { return storage_->renew(study_, job, worker_, lease_); }
  void release(std::int64_t job) { storage_->release(study_, job, worker_); }
  /// False: it was too late, and another worker's result counts.
  bool finish(std::int64_t job, const nlohmann::json& result) {
    return storage_->finish(study_, job, worker_, result);
  }
  /// As ended_by_time() has it.
  nlohmann::json end(const nlohmann::json& how) { return known(storage_->end(study_, how)); }
  nlohmann::json ended() { return known(storage_->ended(study_)); }

  /// Reads the results that are new.
  void fetch();
  /// Of a job, as far as they have been fetched; null: there is none.
  const nlohmann::json* result(std::int64_t job) const;

  double lease() const { return lease_; }

 private:
  /// Throws StorageError for an end that this version does not know.
  nlohmann::json known(nlohmann::json ended) const;

  const std::shared_ptr<StudyStorage> storage_;
  const std::string study_;
  const std::string worker_;  // no other process and no other machine has it
  const double lease_;
  std::int64_t sequence_ = 0;
  std::map<std::int64_t, nlohmann::json> results_;
};

}  // namespace treadle::internal
