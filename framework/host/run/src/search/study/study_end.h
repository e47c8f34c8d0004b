#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "search/settings/search_settings.h"

/// Why a search has ended: {"reason": "time", "text": "…"} of result.json. An early end, which a
/// search that continues must know, is also in its journal and in the storage of a shared study.
namespace treadle::internal {

/// Why a study that nobody ended early begins no further job.
enum class EndReason {
  kTrials,    ///< it has all trials of the document
  kPatience,  ///< `search.patience` trials brought no new best
  kSpace,     ///< the tuner has no more points
  kPruner     ///< the pruner begins no more trials
};

nlohmann::json ended_by(EndReason reason, const SearchSettings& settings);

/// The early end of a search whose time is up, after its first `jobs` jobs. `left`: seconds of the
/// budget. `best`: the trial to train last, so that a search that continues chooses the same.
nlohmann::json ended_by_time(std::size_t jobs, double left, std::optional<std::int64_t> best);

/// Whether stored JSON is in the form of ended_by_time(), or null: the search was not ended early.
bool is_early_end(const nlohmann::json& ended);

}  // namespace treadle::internal
