#pragma once

#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {

inline const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

}  // namespace treadle::testing
