#include "cache.h"

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::layers {
namespace {
constexpr std::string_view kPositions = "positions";
}

std::int64_t cached_positions(const StateDict& state) {
  return state.has_value(kPositions) ? state.value(kPositions).get<std::int64_t>() : 0;
}

void put_cached_positions(StateDict& state, std::int64_t positions) {
  state.put(kPositions, nlohmann::json(positions));
}

at::Tensor cached_rows(const at::Tensor& cache, std::int64_t rows) {
  if (cache.size(0) < rows) {
    throw DataError("has a cache of " + std::to_string(cache.size(0)) + " rows, but is given " +
                    std::to_string(rows) + "; each row continues that of the call before");
  }
  return cache.narrow(0, 0, rows);
}

}  // namespace treadle::layers
