#pragma once

#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {

inline const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

/// Layers of other plugins, too.
inline const PluginRegistry& components() {
  return plugin().registry();
}

/// The parameters of a hive.
inline nlohmann::json grid(int rows, int columns, nlohmann::json cells, const char* combine) {
  return {{"rows", rows}, {"columns", columns}, {"cells", std::move(cells)}, {"combine", combine}};
}

}  // namespace treadle::testing
