#pragma once

#include <string>

#include <treadle/base/number.h>

namespace treadle {

/// Which way is better; decides what "best" means and how early stopping looks at it.
enum class Direction { kLowerIsBetter, kHigherIsBetter, kNone };

struct MetricValue {
  std::string name;  ///< "accuracy", "recall.setosa"
  Number value;
  Direction direction = Direction::kNone;
};

}  // namespace treadle
