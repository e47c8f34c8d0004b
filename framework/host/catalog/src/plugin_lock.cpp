#include <treadle/host/catalog/plugin_lock.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/problem.h>
#include <treadle/host/catalog/device_name.h>

namespace treadle {
namespace {

using nlohmann::json;

constexpr int kLockVersion = 1;

/// (slot, component); the slot is empty where it is not one of the document's own.
using Uses = std::set<std::pair<std::string, std::string>>;

/// Walks a value for every component that is used in it. `slot`: whose value it is.
void collect_uses(const json& value, const std::string& slot, Uses& uses) {
  if (value.is_object() && value.contains("use") && value.at("use").is_string())
    uses.emplace(slot, value.at("use").get<std::string>());
  if (value.is_structured()) {
    for (const json& child : value)
      collect_uses(child, "", uses);
  }
}

/// The component of the interface "device" that a resolved document names; empty without one.
std::string device_of(const json& resolved) {
  const json device = resolved.value(json::json_pointer("/resources/device"), json());
  const auto name =
      device.is_string() ? parse_device_name(device.get<std::string>()) : std::nullopt;
  return name ? name->component : std::string();
}

PluginLock::Entry entry_of(const PluginFile& plugin) {
  return {plugin.manifest.id, plugin.manifest.version, plugin.build_id, sha256_file(plugin.file)};
}

std::string difference(const PluginLock::Entry& locked, const PluginLock::Entry& here) {
  std::string text;
  const auto compare = [&text](const char* what, const std::string& there,
                               const std::string& found) {
    if (there != found) {
      text += (text.empty() ? "" : ", ") + std::string(what) + " " + there + ", here " + found;
    }
  };
  compare("version", locked.version, here.version);
  compare("build", locked.build_id, here.build_id);
  if (text.empty())
    compare("SHA-256", locked.sha256, here.sha256);
  return text;
}

}  // namespace

std::vector<const PluginFile*> used_plugins(const PluginCatalog& catalog, const SchemaIndex& index,
                                            const json& resolved) {
  Uses used;
  for (const auto& [slot, value] : resolved.items())
    collect_uses(value, slot, used);
  const std::string device = device_of(resolved);
  std::map<std::string, const PluginFile*> by_id;
  for (const CatalogComponent& component : catalog.components()) {
    const std::string& name = component.component->name;
    const std::string qualified_name = component.qualified_name();
    const std::string_view word = catalog.interfaces().word(component.component->interface_id);
    const auto is_meant = [&] { return index.find(word, name).qualified_name == qualified_name; };
    const bool is_device = word == "device" && (device == name || device == qualified_name);
    // A model and a graph may have one name. A slot is called as its interface is, a list is not.
    const auto is_used = [&](const std::string& text) {
      return used.contains({std::string(word), text}) || used.contains({"", text});
    };
    if (is_used(qualified_name) || ((is_used(name) || is_device) && is_meant()))
      by_id[component.plugin->manifest.id] = component.plugin;
  }
  std::vector<const PluginFile*> plugins;
  for (const auto& [id, plugin] : by_id)
    plugins.push_back(plugin);
  return plugins;
}

PluginLock PluginLock::of(std::span<const PluginFile* const> plugins) {
  PluginLock lock;
  for (const PluginFile* plugin : plugins)
    lock.entries_.push_back(entry_of(*plugin));
  std::sort(lock.entries_.begin(), lock.entries_.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return lock;
}

PluginLock PluginLock::read(const std::filesystem::path& file) {
  return from(*Document::read(file));
}

PluginLock PluginLock::parse(std::string_view text, const std::string& source) {
  return from(*Document::parse(text, source));
}

PluginLock PluginLock::from(const Document& document) {
  const json& lock = document.value();
  PluginLock read;
  try {
    if (lock.at("treadle_lock") != kLockVersion)
      throw DocumentError({{{document.file(), 0, 0}, "/treadle_lock", "expected version 1"}});
    for (const json& plugin : lock.at("plugins")) {
      read.entries_.push_back(
          {plugin.at("id").get<std::string>(), plugin.at("version").get<std::string>(),
           plugin.at("build_id").get<std::string>(), plugin.at("sha256").get<std::string>()});
    }
  } catch (const json::exception&) {
    throw DocumentError({{{document.file(), 0, 0},
                          "",
                          "is not a lock file; make one with `workflow-runner plugins lock`, or "
                          "take plugins.lock from a run's folder"}});
  }
  return read;
}

std::string PluginLock::text() const {
  json plugins = json::array();
  for (const Entry& entry : entries_) {
    plugins.push_back({{"id", entry.id},
                       {"version", entry.version},
                       {"build_id", entry.build_id},
                       {"sha256", entry.sha256}});
  }
  return json{{"treadle_lock", kLockVersion}, {"plugins", std::move(plugins)}}.dump(2) + "\n";
}

void PluginLock::expect_present(const PluginCatalog& catalog) const {
  std::string problems;
  for (const Entry& entry : entries_) {
    const std::string why = catalog.why_missing(entry.id);
    if (why.empty())
      continue;
    problems += (problems.empty() ? "" : "\n") + ("the run used plugin " + entry.id + " ") +
                entry.version + ", which " + why + "; install it again, or name its folder with " +
                "--plugin-dir";
  }
  if (!problems.empty())
    throw PluginError(problems);
}

void PluginLock::expect(std::span<const PluginFile* const> plugins,
                        const std::string& source) const {
  std::string problems;
  for (const PluginFile* plugin : plugins) {
    const auto locked = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.id == plugin->manifest.id;
    });
    std::string problem;
    if (locked == entries_.end()) {
      problem = "is not named in " + source;
    } else if (const std::string text = difference(*locked, entry_of(*plugin)); !text.empty()) {
      problem = "is not the one " + source + " names (" + text + ")";
    }
    if (!problem.empty()) {
      problems += (problems.empty() ? "" : "\n") + ("plugin " + plugin->title() + " " + problem) +
                  "; restore that one, or run without --locked";
    }
  }
  if (!problems.empty())
    throw PluginError(problems);
}

}  // namespace treadle
