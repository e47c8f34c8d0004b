#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/plugin_catalog.h>
#include <treadle/host/catalog/plugin_probe.h>
#include <treadle/host/catalog/plugin_settings.h>

#include "terminal/terminal.h"

/// `plugins why` and `plugins check`: why a plugin is used or not, and whether it can be
/// distributed.
namespace treadle::cli {

/// The plugins that `name` means: a plugin's id, a component's name, plain or qualified, or a file.
std::vector<const PluginFile*> plugins_meant(const PluginCatalog& catalog, std::string_view name);
/// The same; throws UsageError with near misses and every place that was searched when there is
/// none.
std::vector<const PluginFile*> plugins_named(const PluginCatalog& catalog, std::string_view name);

std::string plugin_reasons(const PluginCatalog& catalog,
                           const std::vector<const PluginFile*>& plugins, const Terminal& terminal);
nlohmann::json plugin_reasons_json(const std::vector<const PluginFile*>& plugins);

/// The outcome of `plugins check`.
struct PluginCheck {
  PluginFile plugin;
  std::vector<ProbeFinding> findings;
  bool loads = false;  ///< into this runner, whatever else is found

  bool is_good() const;
  std::string text(const Terminal& terminal) const;
  nlohmann::json json() const;
};

/// Checks the plugin in `file` in a helper process. Throws UsageError where there is no such file.
PluginCheck check_plugin(const std::filesystem::path& file, PluginSettings settings);

}  // namespace treadle::cli
