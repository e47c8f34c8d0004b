#include <treadle/search/trial_order.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace treadle {

double violation(const Trial& trial) {
  double sum = 0;
  for (const double value : trial.constraints) {
    if (std::isnan(value))
      return std::numeric_limits<double>::infinity();
    sum += std::max(value, 0.0);
  }
  return sum;
}

bool dominates(std::span<const double> a, std::span<const double> b) {
  bool is_better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i])
      return false;
    is_better |= a[i] < b[i];
  }
  return is_better;
}

}  // namespace treadle
