#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "workload.h"

namespace treadle::benchmarks {

/// What one measurement gave: the number that is compared, and others that stand beside it.
struct Measure {
  double value = 0;
  std::map<std::string, double> beside;  ///< "peak memory, MB" → 312
};

struct Contestant {
  std::string name;
  bool is_ours = false;
  std::function<Measure()> measure;
};

/// A number among others: the middle one, the smallest, the largest.
struct Spread {
  double median = 0;
  double smallest = 0;
  double largest = 0;
};
/// Expects a value.
Spread spread_of(std::vector<double> values);

/// Where the median of what was drawn from lies, with a probability, whatever its distribution is:
/// between the k-th smallest value and the k-th largest (the sign test's interval; Conover,
/// Practical Nonparametric Statistics, 3.2).
struct Interval {
  double median = 0;
  double low = 0;
  double high = 0;
  double coverage = 0;  ///< the probability: at least what was asked for, or what the values allow
};
/// Expects a value. The narrowest interval that covers with probability `coverage`. Of seven values
/// it reaches from the smallest to the largest and covers with 0.98; fewer than six cannot cover
/// with 0.95.
Interval median_interval(std::vector<double> values, double coverage);

/// By the name of the contestant, one value a round.
using Measured = std::map<std::string, std::vector<double>>;

/// ours / theirs, round by round.
std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& theirs);

/// Measures all contestants in turn, so that what else the machine does meets all of them; every
/// other round goes backwards. Prints a line a round, then medians, smallest and largest.
Measured measure_in_turn(const std::vector<Contestant>& contestants, const std::string& unit,
                         int rounds);

/// Measures in turn, then prints for each of ours the ratio to each of the others, taken within a
/// round: its median, its spread, who won, and whether a goal was reached.
void compare(const std::vector<Contestant>& contestants, const std::vector<Goal>& goals,
             const std::string& unit, int rounds);

}  // namespace treadle::benchmarks
