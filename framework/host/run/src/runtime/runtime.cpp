#include <treadle/host/run/runtime.h>

#include <treadle/host/catalog/plugin_lock.h>
#include <treadle/host/run/plugin_loader.h>

namespace treadle {
Runtime::Runtime(const RuntimeOptions& options)
    : options_(options),
      catalog_(PluginCatalog::scan(catalog_options(options))),
      registry_(std::make_unique<PluginRegistry>(std::make_shared<PluginLoader>(catalog_))) {}

Runtime::~Runtime() = default;

void Runtime::expect_usable(const nlohmann::json& resolved) const {
  const std::vector<const PluginFile*> used = used_plugins(*catalog_, schemas(), resolved);
  if (!options_.lock_file.empty())
    PluginLock::read(options_.lock_file).expect(used, options_.lock_file.string());
  catalog_->expect_loadable_together(used);
}

ResolvedWorkflow Runtime::read(const std::filesystem::path& path,
                               std::span<const std::string> overrides) const {
  return read_workflow(path, overrides, schemas());
}

ResolvedWorkflow Runtime::resolve(nlohmann::json document,
                                  const std::filesystem::path& folder) const {
  return resolve_workflow(Document::from_json(std::move(document), folder), schemas());
}

ResolvedWorkflow Runtime::resolve(const Workflow& workflow) const {
  return resolve_workflow(workflow.document(), schemas());
}

}  // namespace treadle
