#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/data/data_spec.h>
#include <treadle/host/run/runtime.h>

#include "dice.h"

namespace treadle::testing {

/// Weights for a model to start from.
inline constexpr const char* kWeightsFile = "weights.safetensors";

/// A document while it is drawn: the facts about it so far, and about the place it is drawn for.
struct Drawing {
  const Runtime& runtime;
  Dice dice;
  std::filesystem::path folder;  ///< of the files it names

  DataSpec data = {};                     ///< as the data component opened it
  std::vector<std::string> columns = {};  ///< of all inputs
  std::vector<std::string> inputs = {};
  std::vector<std::string> targets = {};
  std::vector<std::string> metrics = {};  ///< as the history calls them
  std::vector<std::string> tags = {};     ///< of the model
  nlohmann::json flow = {};               ///< steps that suit the data

  /// Whether a target has a value for each position of a row.
  bool has_positions() const {
    return std::any_of(data.targets.begin(), data.targets.end(),
                       [](const TargetSpec& target) { return target.position_dimensions() > 0; });
  }
};

}  // namespace treadle::testing
