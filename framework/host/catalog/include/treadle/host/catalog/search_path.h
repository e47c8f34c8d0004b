#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace treadle {

/// A folder in which plugins are looked for, and who named it.
struct SearchFolder {
  std::filesystem::path folder;  ///< absolute; need not exist
  std::string origin;            ///< "--plugin-dir", the variable's name, "user", "installed"
};

/// Reads an environment variable; null when it is not set.
using EnvironmentReader = std::function<const char*(const char*)>;

/// The process's environment; nothing in set-id programs.
const char* read_environment(const char* name);

/// Where plugins are looked for, first come first: the folders given on the command line, those in
/// TREADLE_PLUGIN_PATH (colon-separated), $XDG_DATA_HOME/treadle/plugins, and the folder of
/// Treadle's own plugins below `libraries`, which those in TREADLE_PLUGIN_SYSTEM_PATH replace.
/// Throws UsageError when a folder given on the command line does not exist, or a variable has an
/// entry that is not absolute.
std::vector<SearchFolder> search_path(std::span<const std::filesystem::path> plugin_dirs,
                                      const std::filesystem::path& libraries,
                                      const EnvironmentReader& environment = read_environment);

/// The cache file of the catalog; empty when there is no home for it.
std::filesystem::path default_cache_file(const EnvironmentReader& environment = read_environment);

/// Every `*.so` in `folder` and in its sub-folders (one level), sorted. Empty when the folder is
/// not there or cannot be read. Links to files are followed, links to folders are not.
std::vector<std::filesystem::path> plugin_files(const std::filesystem::path& folder);

/// The reason why code from this file or folder must not run: others may write to it. Looks at the
/// permissions of the file (or what it links to) and of its folder. Empty when it may.
std::string writable_by_others(const std::filesystem::path& file);

}  // namespace treadle
