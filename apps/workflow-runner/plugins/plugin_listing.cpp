#include "plugins/plugin_listing.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/text_wrap.h>

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::string components_text(const PluginCatalog& catalog, const Terminal& terminal,
                            std::string_view only) {
  std::string text;
  for (const InterfaceName& interface : catalog.interfaces().names()) {
    if (!only.empty() && interface.word != only)
      continue;
    const std::vector<CatalogComponent> components = catalog.components(interface.word);
    if (components.empty())
      continue;
    std::vector<std::string> names;
    std::size_t width = 0;
    for (const CatalogComponent& component : components) {
      names.push_back(document_name(catalog, component));
      width = std::max(width, columns_of(names.back()));
    }
    text += terminal.bold(interface.word) + terminal.dim("  " + interface.about) + "\n";
    for (std::size_t i = 0; i < components.size(); ++i) {
      text += hanging_text("  " + names[i], width + 4, components[i].component->summary,
                           terminal.width());
    }
    text += "\n";
  }
  return text;
}

/// A library without our notes is somebody else's business, unless it was named.
bool is_worth_a_word(const PluginFile& plugin) {
  return plugin.verdict != Verdict::kUsable &&
         (plugin.verdict != Verdict::kNotAPlugin || plugin.origin == PluginFile::kNamed);
}

std::string unusable_text(const PluginCatalog& catalog, const Terminal& terminal) {
  std::string text;
  for (const PluginFile& plugin : catalog.plugins()) {
    if (is_worth_a_word(plugin))
      text += hanging_text("", 2, plugin.title() + " " + plugin.reason, terminal.width());
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
  const std::string_view word = catalog.interfaces().word(component.component->interface_id);
  return catalog.find(word, component.component->name).found ? component.component->name
                                                             : component.qualified_name();
}

std::string plugin_listing(const PluginCatalog& catalog, const Terminal& terminal,
                           std::string_view only) {
  std::string text = components_text(catalog, terminal, only) + unusable_text(catalog, terminal) +
                     places_text(catalog);
  for (const std::string& warning : catalog.warnings())
    text += "\nwarning: " + warning + "\n";
  return text;
}

Json plugin_json(const PluginFile& plugin) {
  const InterfaceTable interfaces = plugin.manifest.interface_table();
  Json declared = Json::array();
  for (const InterfaceName& name : plugin.manifest.interfaces)
    declared.push_back({{"word", name.word}, {"id", name.id}, {"summary", name.about}});
  Json components = Json::array();
  for (const ManifestComponent& component : plugin.manifest.components) {
    components.push_back({{"interface", interfaces.word(component.interface_id)},
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
          {"interfaces", std::move(declared)},
          {"components", std::move(components)}};
}

void expect_interface(const PluginCatalog& catalog, std::string_view word) {
  if (catalog.interfaces().id(word).empty())
    throw UsageError(catalog.interfaces().explain_unknown(word));
}

CatalogComponent component_named(const PluginCatalog& catalog,
                                 const std::vector<std::string>& words) {
  const std::string& name = words.back();
  if (words.size() > 1) {
    expect_interface(catalog, words.front());
    const Lookup lookup = catalog.find(words.front(), name);
    if (!lookup.found)
      throw UsageError(lookup.problem);
    return *lookup.found;
  }
  std::vector<CatalogComponent> found;
  std::vector<std::string> commands;
  std::vector<std::string> names;
  for (const CatalogComponent& component : catalog.components()) {
    names.push_back(component.component->name);
    if (component.component->name != name && component.qualified_name() != name)
      continue;
    found.push_back(component);
    commands.push_back("plugins describe " +
                       std::string(catalog.interfaces().word(component.component->interface_id)) +
                       " " + document_name(catalog, component));
  }
  if (found.size() == 1)
    return found.front();
  if (found.empty()) {
    const std::string suggestion = did_you_mean(name, names);
    throw UsageError("no plugin offers " + quote_text(name) +
                     (suggestion.empty() ? "; see \"workflow-runner plugins list\"" : suggestion));
  }
  throw UsageError(quote_text(name) + " is the name of " + std::to_string(found.size()) +
                   " components; type one of " + quoted_list(commands));
}

Json plugin_listing_json(const PluginCatalog& catalog, std::string_view only) {
  Json plugins = Json::array();
  for (const PluginFile& plugin : catalog.plugins()) {
    const auto& components = plugin.manifest.components;
    if (only.empty() ||
        std::any_of(components.begin(), components.end(), [&](const ManifestComponent& component) {
          return catalog.interfaces().word(component.interface_id) == only;
        })) {
      plugins.push_back(plugin_json(plugin));
    }
  }
  Json folders = Json::array();
  for (const SearchFolder& place : catalog.folders())
    folders.push_back({{"folder", place.folder.string()}, {"origin", place.origin}});
  return {{"plugins", std::move(plugins)},
          {"folders", std::move(folders)},
          {"warnings", catalog.warnings()}};
}

}  // namespace treadle::cli
