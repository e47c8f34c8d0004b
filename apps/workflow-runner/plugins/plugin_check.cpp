#include "plugins/plugin_check.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "plugins/plugin_listing.h"

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool is_meant(const PluginFile& plugin, std::string_view name) {
  std::error_code error;
  if (plugin.manifest.id == name || plugin.file.filename() == name || plugin.file.stem() == name ||
      (fs::exists(name, error) && fs::equivalent(plugin.file, name, error)))
    return true;
  return std::any_of(plugin.manifest.components.begin(), plugin.manifest.components.end(),
                     [&](const ManifestComponent& component) {
                       return component.name == name ||
                              plugin.manifest.id + "/" + component.name == name;
                     });
}

/// Everything that could have been meant.
std::vector<std::string> known_names(const PluginCatalog& catalog) {
  std::set<std::string> names;
  for (const PluginFile& plugin : catalog.plugins()) {
    names.insert(plugin.manifest.id.empty() ? plugin.file.filename().string() : plugin.manifest.id);
    for (const ManifestComponent& component : plugin.manifest.components)
      names.insert(component.name);
  }
  return {names.begin(), names.end()};
}

/// "\n  /…/plugins (user): there is no such folder"
std::string searched(const PluginCatalog& catalog) {
  std::string text;
  for (const SearchFolder& place : catalog.folders()) {
    const auto files = plugin_files(place.folder).size();
    std::error_code error;
    text += "\n  " + place.folder.string() + " (" + place.origin + "): " +
            (fs::is_directory(place.folder, error)
                 ? std::to_string(files) + (files == 1 ? " library" : " libraries")
                 : "there is no such folder");
  }
  return text;
}

/// What can be done about a verdict that its reason does not say already.
std::string_view remedy(const PluginFile& plugin) {
  if (plugin.verdict == Verdict::kUsable && plugin.origin == PluginFile::kExamined)
    return "name it with --plugin, or put it into a folder of the search path";
  static constexpr std::string_view kRemedies[] = {
      "",
      "build it with treadle_add_plugin()",
      "",
      "",
      "",
      "take its id out of the variable",
      "when it is mended, the next command tries it again; `plugins check` tries it now",
      "remove one of the two files"};
  return kRemedies[static_cast<std::size_t>(plugin.verdict)];
}

std::string offers(const PluginFile& plugin) {
  const InterfaceTable interfaces = plugin.manifest.interface_table();
  std::string text;
  for (const ManifestComponent& component : plugin.manifest.components) {
    const std::string_view word = interfaces.word(component.interface_id);
    text += (text.empty() ? "" : ", ") +
            (word.empty() ? component.interface_id : std::string(word)) + " " + component.name;
  }
  return text.empty() ? "nothing" : text;
}

std::string subject(const PluginFile& plugin) {
  return plugin.manifest.id.empty() ? plugin.file.filename().string() : plugin.manifest.title();
}

/// Names this plugin shares with others.
std::vector<std::string> shared_names(const PluginCatalog& catalog, const PluginFile& plugin) {
  std::vector<std::string> shared;
  for (const CatalogComponent& other : catalog.components()) {
    if (other.plugin->manifest.id == plugin.manifest.id)
      continue;
    for (const ManifestComponent& mine : plugin.manifest.components) {
      if (mine.interface_id == other.component->interface_id && mine.name == other.component->name)
        shared.push_back(other.qualified_name());
    }
  }
  return shared;
}

}  // namespace

std::vector<const PluginFile*> plugins_meant(const PluginCatalog& catalog, std::string_view name) {
  std::vector<const PluginFile*> plugins;
  for (const PluginFile& plugin : catalog.plugins()) {
    if (is_meant(plugin, name))
      plugins.push_back(&plugin);
  }
  return plugins;
}

std::vector<const PluginFile*> plugins_named(const PluginCatalog& catalog, std::string_view name) {
  std::vector<const PluginFile*> plugins = plugins_meant(catalog, name);
  if (plugins.empty()) {
    throw UsageError("no plugin and no component is called " + quote_text(name) +
                     did_you_mean(name, known_names(catalog)) + "; searched:" + searched(catalog));
  }
  return plugins;
}

std::string plugin_reasons(const PluginCatalog& catalog,
                           const std::vector<const PluginFile*>& plugins,
                           const Terminal& terminal) {
  std::string text;
  for (const PluginFile* plugin : plugins) {
    const bool usable = plugin->verdict == Verdict::kUsable;
    const std::string word(verdict_word(plugin->verdict));
    text += (text.empty() ? "" : "\n") + terminal.bold(subject(*plugin)) + "\n";
    text += "  file     " + plugin->file.string() + " (" + plugin->origin + ")\n";
    text += "  verdict  " + (usable ? terminal.green(word) : terminal.red(word)) +
            (plugin->reason.empty() ? "" : ": it " + plugin->reason) + "\n";
    if (const std::string_view remedy_text = remedy(*plugin); !remedy_text.empty())
      text += "  remedy   " + std::string(remedy_text) + "\n";
    if (!plugin->manifest.id.empty())
      text += "  offers   " + offers(*plugin) + "\n";
    for (const std::string& other : shared_names(catalog, *plugin))
      text += "  shares   a name with " + other + ": documents must say which\n";
  }
  return text;
}

Json plugin_reasons_json(const std::vector<const PluginFile*>& plugins) {
  Json list = Json::array();
  for (const PluginFile* plugin : plugins) {
    Json entry = plugin_json(*plugin);
    entry["remedy"] = remedy(*plugin);
    list.push_back(std::move(entry));
  }
  return {{"plugins", std::move(list)}};
}

bool PluginCheck::is_good() const {
  return std::all_of(findings.begin(), findings.end(),
                     [](const ProbeFinding& finding) { return finding.good; });
}

std::string PluginCheck::text(const Terminal& terminal) const {
  std::string text = terminal.bold(subject(plugin)) + "\n";
  for (const ProbeFinding& finding : findings) {
    text += (finding.good ? terminal.green("  ok    ") : terminal.red("  wrong ")) + "it " +
            finding.text + "\n";
  }
  return text;
}

Json PluginCheck::json() const {
  Json list = Json::array();
  for (const ProbeFinding& finding : findings)
    list.push_back({{"good", finding.good}, {"text", finding.text}});
  return {{"plugin", plugin_json(plugin)}, {"good", is_good()}, {"findings", std::move(list)}};
}

PluginCheck check_plugin(const fs::path& file, PluginSettings settings) {
  settings.plugins = {file.string()};
  CatalogOptions options = catalog_options(settings);
  options.only_report = true;
  const PluginProbe probe(options.probe);
  const std::shared_ptr<const PluginCatalog> catalog = PluginCatalog::scan(std::move(options));
  PluginCheck check;
  check.plugin = *plugins_named(*catalog, file.string()).front();
  const PluginFile& plugin = check.plugin;
  // Another file with its id may come first; this one is what was asked about. A crash is looked at
  // again: it may have been mended by another library.
  const bool fits = plugin.verdict == Verdict::kUsable || plugin.verdict == Verdict::kShadowed ||
                    plugin.verdict == Verdict::kBroken || plugin.verdict == Verdict::kDisabled;
  if (!fits) {
    check.findings.push_back({false, plugin.reason});
    return check;
  }
  check.findings.push_back({true, "was built for this runner"});
  const ProbeVerdict verdict = probe.inspect(plugin.file);
  if (!verdict.problem.empty()) {
    check.findings.push_back({false, verdict.problem});
    return check;
  }
  check.loads = true;
  check.findings.push_back({true, "loads in " + std::to_string(verdict.took.count()) + " ms"});
  check.findings.insert(check.findings.end(), verdict.findings.begin(), verdict.findings.end());
  for (const std::string& other : shared_names(*catalog, plugin)) {
    check.findings.push_back(
        {true, "shares a name with " + other + ", so documents must say which of the two"});
  }
  return check;
}

}  // namespace treadle::cli
