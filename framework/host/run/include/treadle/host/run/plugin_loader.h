#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/host/catalog/plugin_catalog.h>

namespace treadle {

/// Turns plugins of a catalog into running code, each when the first of its components is
/// requested, and provides the components of a PluginRegistry.
///
/// A loaded library stays for the life of the process, independent of the loader: tensors,
/// exceptions and functions of a plugin may outlive every object that refers to it. The entry of a
/// plugin is called once; when it fails, every later attempt reports the same failure. Thread-safe:
/// different plugins load at once.
class PluginLoader final : public ComponentLoader {
 public:
  explicit PluginLoader(std::shared_ptr<const PluginCatalog> catalog);
  ~PluginLoader() override;

  std::vector<std::string> names(std::string_view interface_id) const override;
  ComponentEntry find(std::string_view interface_id, std::string_view name) const override;
  FoundComponent look_up(std::string_view interface_word, std::string_view name) const override;
  const InterfaceTable& interfaces() const override { return catalog_->interfaces(); }

  /// Throws PluginError naming plugin and file when the library cannot be loaded, has no entry of
  /// its own, fails in its entry, or registers something else than its manifest lists.
  ComponentFactory load(const ComponentEntry& entry) override;

 private:
  class Module;

  Module& module(const std::string& plugin_id);

  std::shared_ptr<const PluginCatalog> catalog_;
  std::mutex mutex_;  // guards modules_; not held while a plugin runs
  std::map<std::string, std::unique_ptr<Module>, std::less<>> modules_;
};

}  // namespace treadle
