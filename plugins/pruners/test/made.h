#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/search/pruner.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::pruners {

inline std::unique_ptr<Pruner> make(const std::string& name,
                                    const nlohmann::json& parameters = {}) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Pruner>(name, parameters);
}

/// A trial with these values at the epochs 1, 2, …; a complete one has the last as its result.
inline Trial trial_of(std::int64_t number, TrialState state, const std::vector<double>& values) {
  Trial trial;
  trial.number = number;
  trial.state = state;
  for (const double value : values) {
    const auto epoch = static_cast<std::int64_t>(trial.intermediate.size()) + 1;
    trial.intermediate.push_back({epoch, value});
  }
  if (state == TrialState::kComplete)
    trial.values = {values.back()};
  return trial;
}

/// The epochs, up to `last`, at which a trial is judged that goes on each time.
inline std::vector<std::int64_t> epochs_of(const Pruner& pruner, std::int64_t last,
                                           std::int64_t trial = 0) {
  std::vector<std::int64_t> epochs;
  for (auto step = pruner.next_step(trial, 0); step && *step <= last;
       step = pruner.next_step(trial, *step))
    epochs.push_back(*step);
  return epochs;
}

}  // namespace treadle::pruners
