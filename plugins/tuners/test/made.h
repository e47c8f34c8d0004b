#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/search/tuner.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::tuners {

inline std::unique_ptr<Tuner> make(const std::string& name, const nlohmann::json& parameters = {}) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Tuner>(name, parameters);
}

}  // namespace treadle::tuners
