#include <treadle/host/run/runtime.h>

#include <treadle/host/catalog/fingerprint.h>
#include <treadle/host/catalog/search_path.h>
#include <treadle/host/run/plugin_loader.h>

namespace treadle {
namespace {

std::shared_ptr<const PluginCatalog> scan(const RuntimeOptions& options) {
  CatalogOptions catalog;
  catalog.folders = search_path(options.plugin_dirs, library_folder());
  catalog.cache_file = default_cache_file();
  catalog.allow_writable = options.allow_writable;
  return PluginCatalog::scan(std::move(catalog));
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : catalog_(scan(options)),
      schemas_(catalog_),
      registry_(std::make_unique<PluginRegistry>(std::make_shared<PluginLoader>(catalog_))) {}

Runtime::~Runtime() = default;

ResolvedWorkflow Runtime::read(const std::filesystem::path& path,
                               std::span<const std::string> overrides) const {
  return read_workflow(path, overrides, schemas_);
}

ResolvedWorkflow Runtime::resolve(nlohmann::json document,
                                  const std::filesystem::path& folder) const {
  return resolve_workflow(Document::from_json(std::move(document), folder), schemas_);
}

}  // namespace treadle
