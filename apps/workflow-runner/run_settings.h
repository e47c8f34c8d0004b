#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "run_records.h"

/// The documents of runs, compared by the values at their paths.
namespace treadle::cli {

/// "optimizer.learning_rate" → 0.001; a list is one value.
using Settings = std::map<std::string, nlohmann::json>;

/// Without the run's name, and what is nobody's setting.
Settings settings_of(const RunRecord& run);

/// Null where there is none.
nlohmann::json setting_in(const Settings& settings, const std::string& key);

/// The keys whose values are not the same in all of them, sorted.
std::vector<std::string> differing_keys(const std::vector<Settings>& all);

}  // namespace treadle::cli
