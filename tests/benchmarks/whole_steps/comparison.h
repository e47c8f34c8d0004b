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

/// Measures all contestants in turn, so that what else the machine does meets all of them; every
/// other round goes backwards. Prints a line a round, then medians, smallest and largest, and for
/// each of ours the ratio to each of the others, taken within a round: its median, its spread, who
/// won, and whether a goal was reached.
void compare(const std::vector<Contestant>& contestants, const std::vector<Goal>& goals,
             const std::string& unit, int rounds);

}  // namespace treadle::benchmarks
