#pragma once

#include <filesystem>
#include <vector>

#include <treadle/host/catalog/plugin_probe.h>

namespace treadle::internal {

/// Loads the plugin into this process and looks at it from all sides: what it exports, how it was
/// linked, whether its entry is repeatable, whether its components can be made from their defaults,
/// and whether any of that changes the process. Throws PluginError as load_plugin_library() does.
std::vector<ProbeFinding> inspect_library(const std::filesystem::path& file);

}  // namespace treadle::internal
