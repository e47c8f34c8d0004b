#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::series {

/// A feature of the calendar. Cyclic ones are two numbers, the sine and the cosine of their place
/// in the cycle times 2 pi, so that 23 and 0 o'clock are neighbours.
struct CalendarFeature {
  std::string name;
  /// From seconds since 1970-01-01T00:00:00Z to [0, 1), the place in the cycle; of one that is not
  /// cyclic, the number itself.
  double (*place)(double time);
  bool is_cyclic = true;
};

/// Throws ContractViolation for a name that the schema does not have.
const CalendarFeature& calendar_feature(const std::string& name);

/// "hour_sin", "hour_cos"; "weekend".
std::vector<std::string> column_names(const CalendarFeature& feature);

/// Its columns at some times: float64 [N, column_names().size()].
at::Tensor values_at(const CalendarFeature& feature, const at::Tensor& times);

}  // namespace treadle::series
