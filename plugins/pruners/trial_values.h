#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <treadle/search/pruner.h>

/// What pruners read from trials: their values at an epoch, and which are better.
namespace treadle::pruners {

/// The value that the trial had at this epoch; nothing where it has not come that far, or skipped
/// it.
std::optional<double> value_at(const Trial& trial, std::int64_t epoch);

/// Whether the trial is paused, and was so at this epoch.
bool is_paused_at(const Trial& trial, std::int64_t epoch);

/// Whether `a` is better than `b`. NaN is worse than any number, also than infinity.
bool is_better(double a, double b);

/// The best of some values; NaN where none is a number.
double best_of(std::span<const IntermediateValue> values);

/// The trials that have a value at this epoch, whatever became of them since: the best first, equal
/// ones as they come.
std::vector<const Trial*> ranked_at(std::vector<const Trial*> trials, std::int64_t epoch);

std::vector<const Trial*> pointers_to(std::span<const Trial> trials);

}  // namespace treadle::pruners
