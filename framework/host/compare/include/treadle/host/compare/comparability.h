#pragma once

#include <string>
#include <vector>

#include <treadle/host/compare/method_comparison.h>
#include <treadle/host/compare/run_measures.h>
#include <treadle/host/compare/run_records.h>

/// Comparability of runs: the facts that they share, and those that they do not.
namespace treadle::compare {

enum class Sameness { kSame, kDiffers, kUnknown };

struct Check {
  std::string about;  ///< "data", "rows", "loss", "updates", "time"
  Sameness sameness = Sameness::kUnknown;
  std::string text;  ///< what is the same, or what differs and what follows
};

/// Throws UsageError unless the finished runs predict the same targets.
void expect_same_targets(const std::vector<RunRecord>& runs);

/// Whether losses of the finished runs are the same function in the same units.
bool have_comparable_losses(const std::vector<RunRecord>& runs);

/// Of the finished runs: the same data, evaluated rows, loss, number of updates and time.
std::vector<Check> check_comparability(const std::vector<RunRecord>& runs,
                                       const std::vector<MeasuredRun>& measured,
                                       const MethodComparison& methods);

}  // namespace treadle::compare
