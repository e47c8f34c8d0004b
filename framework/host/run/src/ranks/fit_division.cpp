#include "ranks/fit_division.h"

#include <algorithm>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

std::int64_t independent(const std::vector<Fold>& folds) {
  const bool follow_one_another = std::any_of(
      folds.begin(), folds.end(), [](const Fold& fold) { return fold.starts_from.has_value(); });
  if (follow_one_another)
    return 1;
  std::int64_t count = 0;
  for (const Fold& fold : folds)
    count += fold.inner.empty() ? 1 : independent(fold.inner);
  return count;
}

std::string text_of(const FitsAtOnce& fits) {
  const std::string folds = std::to_string(fits.folds) + (fits.folds == 1 ? " fold" : " folds");
  if (!fits.trials)
    return folds;
  return "the trials of the search, " + std::to_string(*fits.trials) + " at once" +
         (fits.folds > 1 ? " with " + folds + " each" : "");
}

}  // namespace

FitsAtOnce fits_at_once(const ValidationPlan& plan, std::optional<std::int64_t> trials) {
  return {independent(plan.folds), trials};
}

FitDivision divide(const std::string& wanted, std::int64_t processes, const FitsAtOnce& fits,
                   std::size_t shards) {
  if (processes == 1)
    return {};
  if (wanted == "fits" && fits.count() == 1) {
    throw UsageError(
        "resources.divide is \"fits\", and this document has one training at a time, which is no "
        "more than one process can do; use folds, a search with \"parallel\" above 1, or "
        "\"auto\"");
  }
  const std::string all = std::to_string(processes) + " processes share ";
  if (wanted == "fits" || (wanted == "auto" && fits.count() >= processes))
    return {true, all + text_of(fits)};
  return {false, all + "the " + std::to_string(shards) + " shards of each step"};
}

}  // namespace treadle::internal
