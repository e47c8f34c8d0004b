#pragma once

#include <cstdint>
#include <string>

#include <treadle/core/model/model.h>

namespace treadle::internal {

/// What `"shards": "auto"` decides, and why.
struct ShardChoice {
  std::int64_t shards = 1;
  std::string reason;  ///< for people
};

/// Shards for a step on `rows` rows: two where two workers are faster with two than with one, and
/// four or eight where those cost two workers next to nothing; at least 16 rows for each where the
/// model normalizes batches. From the model's sizes alone: the same on every machine.
ShardChoice choose_shards(const Model& model, std::int64_t rows);

}  // namespace treadle::internal
