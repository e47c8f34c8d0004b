#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/compare/run_records.h>

/// The documents of runs, compared by the values at their paths.
namespace treadle::compare {

/// "optimizer.learning_rate" → 0.001; a list is one value.
using Settings = std::map<std::string, nlohmann::json>;

/// The settings of a run, without its name and values that nobody sets. Of a search also without
/// the values that every trial replaces: two searches that differ in them alone are the same.
Settings settings_of(const RunRecord& run);

/// The settings of the training of a run's model: settings_of(), and the values of the best trial
/// of a search. Nothing at the paths of a search that is not finished.
Settings trained_settings_of(const RunRecord& run);

/// The settings that are not the same in all of some runs.
struct DifferingSettings {
  /// Paths, sorted. Lists of as many components in all runs are compared element by element:
  /// "model.flow.2.out_features".
  std::vector<std::string> keys;
  std::vector<std::vector<nlohmann::json>> values;  ///< of each run, by key; null where it has none
};

/// Of searches next to runs without one only the tuner, the objective and the number of trials
/// count.
DifferingSettings differing_settings(std::vector<Settings> all);

}  // namespace treadle::compare
