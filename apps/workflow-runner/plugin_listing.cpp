#include "plugin_listing.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/interfaces.h>

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::string components_text(const PluginCatalog& catalog, const Terminal& terminal) {
  std::string text;
  for (const InterfaceName& interface : interface_names()) {
    const std::vector<CatalogComponent> components = catalog.components(interface.word);
    if (components.empty())
      continue;
    std::vector<std::string> names;
    std::size_t width = 0;
    for (const CatalogComponent& component : components) {
      names.push_back(document_name(catalog, component));
      width = std::max(width, columns_of(names.back()));
    }
    text +=
        terminal.bold(interface.word) + terminal.dim("  " + std::string(interface.about)) + "\n";
    for (std::size_t i = 0; i < components.size(); ++i) {
      const std::string line =
          "  " + left_aligned(names[i], width) + "  " + components[i].component->summary;
      text += cut_to(line, terminal.width()) + "\n";
    }
    text += "\n";
  }
  return text;
}

/// A library without our notes is somebody else's business.
bool is_worth_a_word(const PluginFile& plugin) {
  return plugin.verdict != Verdict::kUsable && plugin.verdict != Verdict::kNotAPlugin;
}

std::string unusable_text(const PluginCatalog& catalog, const Terminal& terminal) {
  std::string text;
  for (const PluginFile& plugin : catalog.plugins()) {
    if (is_worth_a_word(plugin))
      text += "  " + plugin.title() + " " + plugin.reason + "\n";
  }
  return text.empty() ? text : terminal.bold("cannot be used") + "\n" + text + "\n";
}

std::string places_text(const PluginCatalog& catalog) {
  const auto usable =
      std::count_if(catalog.plugins().begin(), catalog.plugins().end(),
                    [](const PluginFile& plugin) { return plugin.verdict == Verdict::kUsable; });
  std::string text = std::to_string(usable) + (usable == 1 ? " plugin" : " plugins") + ", found in";
  std::string folders;
  for (const SearchFolder& place : catalog.folders())
    folders += "\n  " + place.folder.string() + " (" + place.origin + ")";
  return text + (folders.empty() ? " no folder" : folders) + "\n";
}

}  // namespace

std::string document_name(const PluginCatalog& catalog, const CatalogComponent& component) {
  const std::string_view word = interface_word(component.component->interface_id);
  return catalog.find(word, component.component->name).found ? component.component->name
                                                             : component.qualified_name();
}

std::string plugin_listing(const PluginCatalog& catalog, const Terminal& terminal) {
  std::string text =
      components_text(catalog, terminal) + unusable_text(catalog, terminal) + places_text(catalog);
  for (const std::string& warning : catalog.warnings())
    text += "\nwarning: " + warning + "\n";
  return text;
}

Json plugin_json(const PluginFile& plugin) {
  Json components = Json::array();
  for (const ManifestComponent& component : plugin.manifest.components) {
    components.push_back({{"interface", interface_word(component.interface_id)},
                          {"name", component.name},
                          {"summary", component.summary}});
  }
  return {{"id", plugin.manifest.id},
          {"version", plugin.manifest.version},
          {"summary", plugin.manifest.summary},
          {"file", plugin.file.string()},
          {"origin", plugin.origin},
          {"build_id", plugin.build_id},
          {"verdict", verdict_word(plugin.verdict)},
          {"reason", plugin.reason},
          {"components", std::move(components)}};
}

Json plugin_listing_json(const PluginCatalog& catalog) {
  Json plugins = Json::array();
  for (const PluginFile& plugin : catalog.plugins())
    plugins.push_back(plugin_json(plugin));
  Json folders = Json::array();
  for (const SearchFolder& place : catalog.folders())
    folders.push_back({{"folder", place.folder.string()}, {"origin", place.origin}});
  return {{"plugins", std::move(plugins)},
          {"folders", std::move(folders)},
          {"warnings", catalog.warnings()}};
}

}  // namespace treadle::cli
