#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "search/settings/search_settings.h"
#include "search/study/study_trial.h"

/// Why a search has ended: {"reason": "time", "text": "…"} of result.json, and words for people.
namespace treadle::internal {

/// Of a search that has begun so many trials, and will begin no other. `is_exhausted`: the tuner
/// has no more points. `has_lost_patience`: `search.patience` trials brought no new best.
nlohmann::json ended_with_trials(const SearchSettings& settings, std::int64_t trials,
                                 bool is_exhausted, bool has_lost_patience);

/// What became of trials of which none is complete.
std::string why_none_is_complete(const std::vector<StudyTrial>& trials, const std::string& pruner);

}  // namespace treadle::internal
