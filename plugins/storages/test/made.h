#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/search/study_storage.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::storages {

/// A lease that passes in no test, in seconds.
inline constexpr double kLong = 1000;

inline std::unique_ptr<StudyStorage> make(const std::string& name, const std::string& location) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<StudyStorage>(name, {{"location", location}});
}

}  // namespace treadle::storages
