#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/host/catalog/plugin_catalog.h>
#include <treadle/host/catalog/plugin_settings.h>
#include <treadle/host/catalog/workflow.h>
#include <treadle/host/catalog/workflow_document.h>

namespace treadle {

/// Where a program that embeds Treadle finds plugins.
using RuntimeOptions = PluginSettings;

/// Everything a program needs to run workflows: the plugins there are, and a registry that loads
/// them at first use. One per program; const functions are thread-safe.
class Runtime {
 public:
  explicit Runtime(const RuntimeOptions& options = {});
  ~Runtime();

  const PluginCatalog& catalog() const { return *catalog_; }
  /// The schemas of documents: components added in code, then those of plugins.
  const SchemaIndex& schemas() const { return registry_->schemas(); }
  PluginRegistry& registry() { return *registry_; }
  const PluginRegistry& registry() const { return *registry_; }

  /// Makes sure, before any of them is loaded, that the plugins a resolved document names are those
  /// of the lock, if there is one, and can be loaded together. Throws PluginError.
  void expect_usable(const nlohmann::json& resolved) const;

  /// Checks a document against the plugins there are; throws DocumentError with every problem.
  ResolvedWorkflow read(const std::filesystem::path& path,
                        std::span<const std::string> overrides = {}) const;
  /// The same for a document built in code; relative paths start at `folder`.
  ResolvedWorkflow resolve(nlohmann::json document, const std::filesystem::path& folder = {}) const;
  ResolvedWorkflow resolve(const Workflow& workflow) const;

 private:
  RuntimeOptions options_;
  std::shared_ptr<const PluginCatalog> catalog_;
  std::unique_ptr<PluginRegistry> registry_;
};

}  // namespace treadle
