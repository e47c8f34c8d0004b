#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <treadle/core/data/batch.h>

namespace treadle::engine {

/// The rows of a training step, in its shards.
struct StepRows {
  std::int64_t count = 0;  ///< of all shards, in all processes
  /// Of each shard that is here; one without rows has no part in the step.
  std::vector<Batch> shards = {};
  /// Why this process has no rows, which the others must hear of. Null: it has them.
  std::exception_ptr error = nullptr;

  /// Shards are all but equal in rows: where shard `place` of `shards` begins.
  static std::int64_t begin_of(std::size_t place, std::size_t shards, std::int64_t count) {
    return count * static_cast<std::int64_t>(place) / static_cast<std::int64_t>(shards);
  }

  template <typename Change>
  StepRows with_each(const Change& change) const {
    StepRows changed{count, {}, error};
    for (const Batch& shard : shards)
      changed.shards.push_back(change(shard));
    return changed;
  }
};

}  // namespace treadle::engine
