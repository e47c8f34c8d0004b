#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <treadle/core/validation/cross_validator.h>

namespace treadle::internal {

/// The trainings of a run that may be done at once.
struct FitsAtOnce {
  /// Of one document: folds, none of which begins with the weights of another one.
  std::int64_t folds = 1;
  /// Trials of a search, each with so many folds. Nothing: the run does not search.
  std::optional<std::int64_t> trials = {};

  std::int64_t count() const { return folds * trials.value_or(1); }
};
/// Folds of folds, where there are some.
FitsAtOnce fits_at_once(const ValidationPlan& plan, std::optional<std::int64_t> trials);

/// The division of a run among the processes that train it together.
struct FitDivision {
  bool divides_fits = false;  ///< else the shards of each step
  std::string text;           ///< "2 processes share 5 folds"; empty: one process
};
/// `wanted`: "auto", "fits" or "shards", as resources.divide of the document. By "auto", fits where
/// each process has one. Throws a UsageError for fits that are not there.
FitDivision divide(const std::string& wanted, std::int64_t processes, const FitsAtOnce& fits,
                   std::size_t shards);

}  // namespace treadle::internal
