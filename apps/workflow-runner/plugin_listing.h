#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/plugin_catalog.h>

#include "terminal.h"

/// What the catalog knows, for people and for programs.
namespace treadle::cli {

/// What documents call the component: its plain name, or "plugin/name" where several plugins offer
/// the plain one.
std::string document_name(const PluginCatalog& catalog, const CatalogComponent& component);

nlohmann::json plugin_json(const PluginFile& plugin);

/// Every component by interface, then the files that look like plugins and cannot be used, then
/// where was looked.
std::string plugin_listing(const PluginCatalog& catalog, const Terminal& terminal);
nlohmann::json plugin_listing_json(const PluginCatalog& catalog);

}  // namespace treadle::cli
