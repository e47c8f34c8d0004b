#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/base/plugin_abi.h>

namespace treadle::testing {

/// A plugin's library, opened in this process and never closed: what it has made may outlive
/// everything.
struct OpenedPlugin {
  TreadlePluginEntry entry = nullptr;
  nlohmann::json manifest;  ///< an object, of the note in the library
};

/// Throws PluginError when the file cannot be opened, or has no entry or no manifest. Nothing else
/// is checked, as a host does.
OpenedPlugin open_plugin(const std::filesystem::path& file);

/// Has the plugin register its components; what went wrong, empty when nothing did.
std::string run_entry(TreadlePluginEntry entry, Registrar& registrar);

}  // namespace treadle::testing
