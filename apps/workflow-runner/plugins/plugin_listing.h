#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/plugin_catalog.h>

#include "terminal/terminal.h"

/// What the catalog knows, for people and for programs.
namespace treadle::cli {

/// What documents call the component: its plain name, or "plugin/name" where several plugins offer
/// the plain one.
std::string document_name(const PluginCatalog& catalog, const CatalogComponent& component);

nlohmann::json plugin_json(const PluginFile& plugin);

/// Every component by interface, then the files that look like plugins and cannot be used, then
/// where was looked. With the word of an interface: its components alone.
std::string plugin_listing(const PluginCatalog& catalog, const Terminal& terminal,
                           std::string_view only = {});
/// Plugins that offer nothing of `only` are left out.
nlohmann::json plugin_listing_json(const PluginCatalog& catalog, std::string_view only = {});

/// Throws UsageError with near misses where there is no such interface.
void expect_interface(const PluginCatalog& catalog, std::string_view word);

/// A component for `plugins describe`. Without the word of its interface the name has to be that of
/// one component only. Throws UsageError saying what else could be meant.
CatalogComponent component_named(const PluginCatalog& catalog,
                                 const std::vector<std::string>& words);

}  // namespace treadle::cli
