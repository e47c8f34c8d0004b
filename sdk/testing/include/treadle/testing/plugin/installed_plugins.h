#pragma once

#include <filesystem>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>

namespace treadle::testing {

/// The components of the plugins that are installed beside the Treadle libraries a test is linked
/// to, and of those in the folders of TREADLE_PLUGIN_PATH, which come first: for slots of the
/// component under test (a strategy that wraps back-propagation, say), and devices to test on.
///
/// Their libraries are opened when a component is first asked for that the plugin under test does
/// not have; one that cannot be opened is passed over. They came with Treadle, so nothing is
/// checked here as a host does. Thread-safe.
class InstalledPlugins {
 public:
  struct Entry {
    nlohmann::json schema;
    ComponentFactory factory;
  };

  /// Null when no plugin has it.
  static const Entry* find(std::string_view interface_id, std::string_view name);

  /// Where they lie: beside libtreadle-core, in a build tree and where Treadle is installed.
  static std::filesystem::path folder();
};

}  // namespace treadle::testing
