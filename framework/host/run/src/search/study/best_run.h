#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/search/tuner.h>

#include "fit/cross_validation.h"
#include "search/journal/study_journal.h"

namespace treadle::internal {

/// The last training of a search: an ordinary run with the document of the best trial. If it fails,
/// the run fails; a resumed run then trains the next best trial in its place.
///
/// Not thread-safe. Throws StorageError if the journal cannot be written.
class BestRun {
 public:
  /// `trials` are those of a study that is over. `chosen`: the best one, if the end of the study
  /// was for its sake. Borrows `journal`.
  BestRun(StudyJournal& journal, std::vector<Trial> trials, std::optional<std::int64_t> chosen);

  /// The best trial whose last training has not failed: a complete one, otherwise the paused one
  /// that was trained the furthest. Nothing: no trial has a result.
  std::optional<std::int64_t> choose() const;
  /// Trains a trial. `fits` are those of `document`; `deadline` is that of the run's model.
  FitPlanner::Orders begin(std::int64_t trial, std::shared_ptr<const ResolvedWorkflow> document,
                           std::unique_ptr<CrossValidation> fits,
                           std::optional<std::chrono::steady_clock::time_point> deadline);
  /// A fit failed. Returns a note for the user; empty: the failure is not the trial's, such as that
  /// of a baseline or missing data.
  std::string failed(const FitId& fit, const Error& error);
  /// Whether a resumed run trains another trial, as this one's training failed.
  bool has_next_best() const { return has_next_best_; }

  /// Of `kept` trials, those that may be members of an ensemble, ascending: complete ones that
  /// satisfy the constraints, unless the best one does not.
  std::vector<std::int64_t> candidates(std::vector<std::int64_t> kept) const;
  const std::vector<Trial>& trials() const { return trials_; }
  // Expect begin().
  std::int64_t trial() const { return trial_; }
  CrossValidation& fits() { return *fits_; }
  const CrossValidation& fits() const { return *fits_; }
  const ResolvedWorkflow& document() const { return *document_; }

 private:
  bool has_failed(std::int64_t trial) const;

  StudyJournal& journal_;
  const std::vector<Trial> trials_;
  const std::optional<std::int64_t> chosen_;
  std::int64_t trial_ = -1;
  bool has_next_best_ = false;
  std::shared_ptr<const ResolvedWorkflow> document_;
  std::unique_ptr<CrossValidation> fits_;
};

}  // namespace treadle::internal
