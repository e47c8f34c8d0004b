#include <treadle/host/catalog/catalog_schema_index.h>

#include <utility>

#include <treadle/base/error.h>

namespace treadle {

CatalogSchemaIndex::CatalogSchemaIndex(std::shared_ptr<const PluginCatalog> catalog)
    : catalog_(std::move(catalog)) {}

FoundComponent CatalogSchemaIndex::find(std::string_view interface_word,
                                        std::string_view name) const {
  const Lookup lookup = catalog_->find(interface_word, name);
  if (!lookup.found)
    return {nullptr, "", lookup.problem, lookup.plugin_at_fault};
  try {
    // The schema lives in the catalog, and so keeps it alive.
    return {std::shared_ptr<const nlohmann::json>(catalog_, &catalog_->schema(*lookup.found)),
            lookup.found->qualified_name(), ""};
  } catch (const PluginError& error) {
    return {nullptr, "", error.what(), true};
  }
}

std::vector<std::string> CatalogSchemaIndex::names(std::string_view interface_word) const {
  std::vector<std::string> names;
  for (const CatalogComponent& component : catalog_->components(interface_word))
    names.push_back(component.component->name);
  return names;
}

}  // namespace treadle
