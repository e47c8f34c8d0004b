#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/schema.h>
#include <treadle/host/catalog/plugin_catalog.h>

namespace treadle {

/// The components of a catalog, for the check of documents. Thread-safe.
class CatalogSchemaIndex final : public SchemaIndex {
 public:
  explicit CatalogSchemaIndex(std::shared_ptr<const PluginCatalog> catalog);

  /// Never throws: a plugin file that changed under our feet is a problem, too.
  FoundComponent find(std::string_view interface_word, std::string_view name) const override;
  std::vector<std::string> names(std::string_view interface_word) const override;

 private:
  std::shared_ptr<const PluginCatalog> catalog_;
};

}  // namespace treadle
