#pragma once

#include <cstdint>
#include <vector>

#include <treadle/base/number.h>

namespace treadle {

/// The loss over some rows, of a model in eval mode.
struct Evaluation {
  Number loss;                     ///< the objective; auxiliary terms are not part of it
  std::vector<MetricValue> terms;  ///< of it, where there are several
  std::int64_t rows = 0;
};

}  // namespace treadle
