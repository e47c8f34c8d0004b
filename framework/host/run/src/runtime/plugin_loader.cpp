#include <treadle/host/run/plugin_loader.h>

#include <map>
#include <optional>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/host/catalog/catalog_schema_index.h>

#include "runtime/plugin_library.h"

namespace treadle {
namespace {

ComponentEntry entry_of(const PluginCatalog& catalog, const CatalogComponent& component) {
  const Manifest& manifest = component.plugin->manifest;
  return {
      component.component->interface_id, component.component->name, manifest.id, manifest.version,
      component.component->summary,      catalog.schema(component)};
}

}  // namespace

/// One plugin's library.
class PluginLoader::Module {
 public:
  Module(const PluginFile& plugin, const HostBuild& host) : plugin_(plugin), host_(host) {}

  ComponentFactory factory(const internal::ComponentKey& key) {
    const std::lock_guard lock(mutex_);
    if (failure_)
      throw PluginError(*failure_);
    if (!factories_)
      load();
    return factories_->at(key);
  }

 private:
  void load() {
    try {
      factories_ = internal::load_plugin_library(plugin_, host_);
    } catch (const PluginError& error) {
      failure_ = "plugin " + plugin_.title() + " " + error.what();
      throw PluginError(*failure_);
    }
  }

  const PluginFile& plugin_;
  const HostBuild& host_;
  std::mutex mutex_;  // held while the plugin loads, so that its entry runs once
  std::optional<internal::Factories> factories_;
  std::optional<std::string> failure_;
};

PluginLoader::PluginLoader(std::shared_ptr<const PluginCatalog> catalog)
    : catalog_(std::move(catalog)) {}

PluginLoader::~PluginLoader() = default;

std::vector<std::string> PluginLoader::names(std::string_view interface_id) const {
  std::map<std::string, std::vector<std::string>> offers;  // of a plain name
  for (const CatalogComponent& offer : catalog_->components()) {
    if (offer.component->interface_id == interface_id)
      offers[offer.component->name].push_back(offer.qualified_name());
  }
  std::vector<std::string> names;
  for (const auto& [name, qualified] : offers) {
    if (qualified.size() == 1)
      names.push_back(name);
    else
      names.insert(names.end(), qualified.begin(), qualified.end());
  }
  return names;
}

ComponentEntry PluginLoader::find(std::string_view interface_id, std::string_view name) const {
  const Lookup lookup = catalog_->find(interfaces().word(interface_id), name);
  if (!lookup.found)
    throw PluginError(lookup.problem);
  return entry_of(*catalog_, *lookup.found);
}

FoundComponent PluginLoader::look_up(std::string_view interface_word, std::string_view name) const {
  return CatalogSchemaIndex(catalog_).find(interface_word, name);
}

PluginLoader::Module& PluginLoader::module(const std::string& plugin_id) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Module>& module = modules_[plugin_id];
  if (!module) {
    const PluginFile* plugin = catalog_->plugin(plugin_id);
    TREADLE_EXPECTS(plugin != nullptr, "there is no usable plugin " + quote_text(plugin_id));
    module = std::make_unique<Module>(*plugin, catalog_->host());
  }
  return *module;
}

ComponentFactory PluginLoader::load(const ComponentEntry& entry) {
  return module(entry.plugin).factory({entry.interface_id, entry.name});
}

}  // namespace treadle
