#pragma once

#include <treadle/host/run/runtime.h>
#include <treadle/testing/plugin_under_test.h>

namespace treadle::testing {

inline const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

/// Layers of other plugins, too.
inline const PluginRegistry& components() {
  static const Runtime runtime;
  return runtime.registry();
}

}  // namespace treadle::testing
