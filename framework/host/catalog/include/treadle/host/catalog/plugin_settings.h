#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <treadle/host/catalog/plugin_catalog.h>
#include <treadle/host/catalog/search_path.h>

namespace treadle {

/// Plugin options of a command line or a program. The environment supplies what is left out:
///
///     TREADLE_PLUGIN_PATH              folders, before the user's and the installed ones
///     TREADLE_PLUGIN_SYSTEM_PATH       folders instead of the installed one
///     TREADLE_PLUGIN_DISABLE           ids that are not used, with commas between them
///     TREADLE_PLUGIN_ALLOW             ids; when set, no others are used
///     TREADLE_PLUGIN_CACHE             the file in which verdicts are cached, or "off"
///     TREADLE_PLUGIN_PROBE             "changed" (default), "always" or "never"
///     TREADLE_PLUGIN_PROBE_TIMEOUT_MS  for loading one plugin; default 10000
struct PluginSettings {
  std::vector<std::filesystem::path> plugin_dirs;  ///< before all others
  std::vector<std::filesystem::path> plugins;      ///< single files, before every folder
  bool allow_writable = false;                     ///< see CatalogOptions
  std::string probing;                             ///< as TREADLE_PLUGIN_PROBE
  std::filesystem::path lock_file;                 ///< runs use what it names; empty for no lock
};

/// What to scan with. Throws UsageError for a folder or file that does not exist and for a variable
/// with another value than those above, PluginError for a lock file that cannot be read.
CatalogOptions catalog_options(const PluginSettings& settings,
                               const EnvironmentReader& environment = read_environment);

}  // namespace treadle
