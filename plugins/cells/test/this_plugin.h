#pragma once

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

}  // namespace treadle::testing
