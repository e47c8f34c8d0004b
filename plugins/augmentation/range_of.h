#pragma once

#include <array>
#include <string>
#include <vector>

#include <treadle/base/config.h>

namespace treadle::augmentation {

/// The two ends of a range. Throws a DocumentError unless they are in ascending order, and above 0
/// where `is_positive`.
inline std::array<double, 2> range_of(const Config& config, const std::string& key,
                                      std::array<double, 2> otherwise, bool is_positive = false) {
  const auto ends = config.get_or(key, std::vector<double>(otherwise.begin(), otherwise.end()));
  if (ends.size() != 2 || ends[0] > ends[1] || (is_positive && ends[0] <= 0))
    config.fail(key, std::string("must be the lower and the upper end of a range") +
                         (is_positive ? " above 0" : ""));
  return {ends[0], ends[1]};
}

}  // namespace treadle::augmentation
