#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/base/plugin_abi.h>

namespace treadle::testing {

/// The components of the plugins that are installed beside the Treadle libraries a test is linked
/// to, and of those in the folders of TREADLE_PLUGIN_PATH, which come first: for slots of the
/// component under test (a strategy that wraps back-propagation, say), and devices to test on.
///
/// Their libraries are opened when a component is first asked for that the plugin under test does
/// not have; one that cannot be opened is passed over. They came with Treadle, so nothing is
/// checked here as a host does. Thread-safe.
class InstalledPlugins {
 public:
  struct Entry {
    nlohmann::json schema;
    ComponentFactory factory;
  };

  /// Null when no plugin has it.
  static const Entry* find(std::string_view interface_id, std::string_view name) {
    static const std::map<Key, Entry> components = all_in(folders());
    const auto found = components.find(Key(interface_id, name));
    return found == components.end() ? nullptr : &found->second;
  }

  /// Where they lie: beside libtreadle-core, in a build tree and where Treadle is installed.
  static std::filesystem::path folder() {
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

 private:
  using Key = std::pair<std::string, std::string>;  // interface id, name

  class Collector final : public Registrar {
   public:
    std::map<Key, ComponentFactory> factories;

   private:
    void do_add(std::string_view interface_id, std::string_view name,
                ComponentFactory factory) override {
      factories.emplace(Key(interface_id, name), std::move(factory));
    }
  };

  static std::vector<std::filesystem::path> folders() {
    std::vector<std::filesystem::path> all;
    if (const char* const listed = std::getenv("TREADLE_PLUGIN_PATH")) {
      std::istringstream each(listed);
      for (std::string one; std::getline(each, one, ':');)
        all.emplace_back(one);
    }
    all.push_back(folder());
    return all;
  }

  static std::map<Key, Entry> all_in(const std::vector<std::filesystem::path>& folders) {
    std::map<Key, Entry> components;
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

  static void add_components(const std::filesystem::path& file, std::map<Key, Entry>& components) {
    // Never closed: what it has made outlives everything here.
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr)
      return;
    const auto entry =
        reinterpret_cast<TreadlePluginEntry>(::dlsym(library, kPluginEntrySymbol.data()));
    const nlohmann::json manifest =
        nlohmann::json::parse(manifest_of(library), nullptr, /*allow_exceptions=*/false);
    if (entry == nullptr || !manifest.is_object())
      return;
    Collector collector;
    const TreadlePluginHost host{.struct_size = sizeof(TreadlePluginHost),
                                 .abi_major = TREADLE_ABI_MAJOR,
                                 .abi_minor = TREADLE_ABI_MINOR,
                                 .registrar = static_cast<Registrar*>(&collector),
                                 .report_error = [](void*, const char*) {},
                                 .error_context = nullptr};
    if (entry(&host) != 0)
      return;
    for (const nlohmann::json& component : manifest.at("components")) {
      const Key key(component.at("interface").get<std::string>(),
                    component.at("name").get<std::string>());
      if (const auto factory = collector.factories.find(key); factory != collector.factories.end())
        components.emplace(key, Entry{component.at("schema"), factory->second});
    }
  }

  /// The text of the manifest note, as it lies in memory; empty without one.
  static std::string manifest_of(void* library) {
    struct Search {
      const link_map* map = nullptr;
      std::string manifest;
    } search;
    if (::dlinfo(library, RTLD_DI_LINKMAP, &search.map) != 0)
      return {};
    const auto look = [](dl_phdr_info* info, std::size_t, void* data) {
      auto& wanted = *static_cast<Search*>(data);
      if (info->dlpi_addr != wanted.map->l_addr)
        return 0;
      for (std::size_t i = 0; i < info->dlpi_phnum && wanted.manifest.empty(); ++i) {
        const auto& part = info->dlpi_phdr[i];
        if (part.p_type == PT_NOTE) {
          wanted.manifest =
              manifest_in(reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr),
                          part.p_memsz, std::max<std::size_t>(part.p_align, 4));
        }
      }
      return 1;
    };
    ::dl_iterate_phdr(look, &search);
    return search.manifest;
  }

  static std::string manifest_in(const char* notes, std::size_t size, std::size_t alignment) {
    const auto aligned = [&](std::size_t offset) {
      return (offset + alignment - 1) / alignment * alignment;
    };
    for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
      ElfW(Nhdr) head;
      std::memcpy(&head, notes + at, sizeof head);
      const std::size_t owner = at + sizeof head;
      const std::size_t text = aligned(owner + head.n_namesz);
      if (text + head.n_descsz > size)
        return {};
      if (head.n_type == kManifestNote && kNoteOwner == notes + owner) {
        const std::string_view whole(notes + text, head.n_descsz);
        return std::string(whole.substr(0, whole.find('\0')));
      }
      at = aligned(text + head.n_descsz);
    }
    return {};
  }
};

}  // namespace treadle::testing
