#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

/// How a search was ended before its trials were made: in its journal, in the storage of a shared
/// study, and in result.json.
namespace treadle::internal {

/// Of a search whose time is up, and which is what its first `jobs` jobs came to. `left`: seconds
/// of the budget. `best`: the trial to train last, so that a search that goes on chooses the same.
nlohmann::json ended_by_time(std::size_t jobs, double left, std::optional<std::int64_t> best);

/// Whether it is what ended_by_time() returns, or null: the search was not ended. To be asked of
/// what was stored.
bool is_early_end(const nlohmann::json& ended);

}  // namespace treadle::internal
