#pragma once

#include <cstdint>

namespace treadle::graph {

/// A router that says beforehand which branches it may choose.
class Selector {
 public:
  virtual ~Selector() = default;

  /// Which ones: first() … last(). For each row by itself, or for the batch.
  virtual std::int64_t first() const = 0;
  virtual std::int64_t last() const = 0;
  virtual bool chooses_by_row() const = 0;
};

}  // namespace treadle::graph
