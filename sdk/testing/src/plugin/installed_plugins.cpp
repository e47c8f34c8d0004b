#include <treadle/testing/plugin/installed_plugins.h>

#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

#include "opened_plugin.h"

namespace treadle::testing {
namespace {

using InterfaceAndName = std::pair<std::string, std::string>;
using InstalledComponents = std::map<InterfaceAndName, InstalledPlugins::Entry>;

class Collector final : public Registrar {
 public:
  std::map<InterfaceAndName, ComponentFactory> factories;

 private:
  void do_add(std::string_view interface_id, std::string_view name,
              ComponentFactory factory) override {
    factories.emplace(InterfaceAndName(interface_id, name), std::move(factory));
  }
};

std::vector<std::filesystem::path> plugin_folders() {
  std::vector<std::filesystem::path> all;
  if (const char* const listed = std::getenv("TREADLE_PLUGIN_PATH")) {
    std::istringstream each(listed);
    for (std::string one; std::getline(each, one, ':');)
      all.emplace_back(one);
  }
  all.push_back(InstalledPlugins::folder());
  return all;
}

void add_components(const std::filesystem::path& file, InstalledComponents& components) {
  OpenedPlugin plugin;
  try {
    plugin = open_plugin(file);
  } catch (const PluginError&) {
    return;
  }
  Collector collector;
  if (!run_entry(plugin.entry, collector).empty())
    return;
  for (const nlohmann::json& component : plugin.manifest.at("components")) {
    const InterfaceAndName key(component.at("interface").get<std::string>(),
                               component.at("name").get<std::string>());
    if (const auto factory = collector.factories.find(key); factory != collector.factories.end())
      components.emplace(key, InstalledPlugins::Entry{component.at("schema"), factory->second});
  }
}

InstalledComponents all_in(const std::vector<std::filesystem::path>& folders) {
  InstalledComponents components;
  for (const std::filesystem::path& folder : folders) {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
      if (file.path().extension() == ".so")
        files.push_back(file.path());
    }
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files)
      add_components(file, components);
  }
  return components;
}

}  // namespace

const InstalledPlugins::Entry* InstalledPlugins::find(std::string_view interface_id,
                                                      std::string_view name) {
  static const InstalledComponents components = all_in(plugin_folders());
  const auto found = components.find(InterfaceAndName(interface_id, name));
  return found == components.end() ? nullptr : &found->second;
}

std::filesystem::path InstalledPlugins::folder() {
  std::filesystem::path core;
  const auto look = [](dl_phdr_info* library, std::size_t, void* found) {
    const std::filesystem::path path = library->dlpi_name;
    if (!path.filename().native().starts_with("libtreadle-core.so"))
      return 0;
    *static_cast<std::filesystem::path*>(found) = path;
    return 1;
  };
  ::dl_iterate_phdr(look, &core);
  return core.parent_path() / "treadle" / "plugins" / std::to_string(TREADLE_ABI_MAJOR);
}

}  // namespace treadle::testing
