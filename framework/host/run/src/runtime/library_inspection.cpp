#include "runtime/library_inspection.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/base/schema.h>
#include <treadle/host/catalog/elf_notes.h>
#include <treadle/host/catalog/plugin_cache.h>
#include <treadle/tensor/process_state.h>

#include "runtime/plugin_library.h"

namespace treadle::internal {
namespace {

std::string listed(const std::vector<std::string>& words, std::string_view separator = ", ") {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kMost); ++i)
    text += (i == 0 ? "" : std::string(separator)) + words[i];
  if (words.size() > kMost)
    text += " and " + std::to_string(words.size() - kMost) + " more";
  return text;
}

/// The dynamic section of a loaded library, as the dynamic linker sees it.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const std::filesystem::path& file)
      : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
    if (handle_ == nullptr || ::dlinfo(handle_, RTLD_DI_LINKMAP, &map_) != 0)
      throw PluginError("cannot be looked at: the dynamic linker does not know it");
  }
  ~LoadedLibrary() { ::dlclose(handle_); }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  std::optional<std::uint64_t> value(std::int64_t tag) const {
    for (const ElfW(Dyn)* entry = map_->l_ld; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == tag)
        return entry->d_un.d_val;
    }
    return std::nullopt;
  }

  std::string text(std::int64_t tag) const {
    const std::optional<std::uint64_t> offset = value(tag);
    return offset ? std::string(strings() + *offset) : std::string();
  }

  /// What other libraries could bind to.
  struct Exported {
    std::string name;
    bool is_unique = false;
  };
  std::vector<Exported> exports() const {
    std::vector<Exported> found;
    const auto* symbols = static_cast<const ElfW(Sym)*>(address(DT_SYMTAB));
    const auto [first, last] = hashed_symbols();
    for (std::uint32_t i = first; symbols != nullptr && i < last; ++i) {
      if (symbols[i].st_shndx == SHN_UNDEF)
        continue;
      found.push_back(
          {strings() + symbols[i].st_name, ELF64_ST_BIND(symbols[i].st_info) == STB_GNU_UNIQUE});
    }
    return found;
  }

 private:
  /// Some C libraries relocate the pointers in a dynamic section, some leave them.
  const void* address(std::int64_t tag) const {
    const std::optional<std::uint64_t> pointer = value(tag);
    if (!pointer)
      return nullptr;
    return reinterpret_cast<const void*>(*pointer < map_->l_addr ? *pointer + map_->l_addr
                                                                 : *pointer);
  }
  const char* strings() const { return static_cast<const char*>(address(DT_STRTAB)); }

  /// The symbols a GNU hash table finds are the last ones of the table: [first, last).
  std::pair<std::uint32_t, std::uint32_t> hashed_symbols() const {
    const auto* table = static_cast<const std::uint32_t*>(address(DT_GNU_HASH));
    if (table == nullptr)
      return {0, 0};
    const std::uint32_t bucket_count = table[0];
    const std::uint32_t first = table[1];
    const std::uint32_t bloom_words = table[2] * sizeof(ElfW(Addr)) / sizeof(std::uint32_t);
    const std::uint32_t* buckets = table + 4 + bloom_words;
    const std::uint32_t* chains = buckets + bucket_count;
    std::uint32_t last = *std::max_element(buckets, buckets + bucket_count);
    if (last < first)
      return {first, first};
    while ((chains[last - first] & 1) == 0)
      ++last;
    return {first, last + 1};
  }

  void* handle_;
  link_map* map_ = nullptr;
};

ProbeFinding check_exports(const LoadedLibrary& library) {
  std::vector<std::string> others;
  for (const LoadedLibrary::Exported& symbol : library.exports()) {
    if (!std::string_view(symbol.name).starts_with("treadle_plugin_entry_v"))
      others.push_back(symbol.name + (symbol.is_unique ? " (unique in the process)" : ""));
  }
  if (others.empty())
    return {true, "exports its entry and nothing else"};
  return {false, "exports " + std::to_string(others.size()) + " symbols beside its entry (" +
                     listed(others) +
                     "), which other plugins may bind to; build it with treadle_add_plugin()"};
}

ProbeFinding check_binding(const LoadedLibrary& library) {
  const std::uint64_t flags = library.value(DT_FLAGS).value_or(0);
  const std::uint64_t more = library.value(DT_FLAGS_1).value_or(0);
  if ((flags & DF_BIND_NOW) != 0 || (more & DF_1_NOW) != 0)
    return {true, "finds every symbol it needs when it is loaded"};
  return {false,
          "looks for symbols only when it calls them, so a missing one ends the run in the "
          "middle; link it with -z now, as treadle_add_plugin() does"};
}

ProbeFinding check_run_path(const LoadedLibrary& library) {
  std::string path = library.text(DT_RUNPATH);
  if (path.empty())
    path = library.text(DT_RPATH);
  std::vector<std::string> foreign;
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty() && !folder.starts_with("$ORIGIN"))
      foreign.emplace_back(folder);
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  if (foreign.empty())
    return {true, "looks for libraries only beside itself and where the system does"};
  return {true, "looks for libraries in " + listed(foreign) +
                    ", which other machines do not have; install it with `cmake --install` before "
                    "giving it away"};
}

std::vector<ComponentKey> keys_of(const Factories& factories) {
  std::vector<ComponentKey> keys;
  for (const auto& [key, factory] : factories)
    keys.push_back(key);
  return keys;
}

ProbeFinding check_repetition(const PluginFile& plugin, const HostBuild& host,
                              const Factories& first) {
  if (keys_of(load_plugin_library(plugin, host)) == keys_of(first))
    return {true, "registers the same components each time its entry is called"};
  return {false, "registers other components when its entry is called a second time"};
}

/// There are no other plugins here.
class Alone final : public SchemaIndex, public PlaceIndex {
  FoundComponent find(std::string_view word, std::string_view name) const override {
    return {nullptr, "", "needs the " + std::string(word) + " " + quote_text(name)};
  }
  Place place_of(std::string_view) const override { return {}; }
};

/// Makes every component that needs no parameters.
ProbeFinding check_defaults(const PluginFile& plugin, const std::string& manifest,
                            const Factories& factories) {
  const Alone alone;
  const ManifestSchemas schemas(manifest);
  std::vector<std::string> made;
  std::vector<std::string> choosy;
  for (const ManifestComponent& component : plugin.manifest.components) {
    Checked checked = check(nlohmann::json::object(), schemas.of(component), alone, alone, "");
    if (!checked.problems.empty()) {
      choosy.push_back(component.name);
      continue;
    }
    std::string failure;
    try {
      const auto object = factories.at({component.interface_id, component.name})(
          Config(std::move(checked.value)), ComponentContext());
      if (object == nullptr)
        failure = "its factory returned nothing";
    } catch (const std::exception& error) {
      failure = error.what();
    } catch (...) {
      failure = "it threw something that is not a std::exception";
    }
    if (!failure.empty()) {
      return {false, "cannot make " + quote_text(component.name) +
                         " from its defaults: " + failure.substr(0, failure.find('\n'))};
    }
    made.push_back(component.name);
  }
  std::string text;
  if (!made.empty())
    text = "makes " + listed(made) + " from defaults alone";
  if (!choosy.empty())
    text += (text.empty() ? "" : "; ") + std::string("needs parameters for ") + listed(choosy);
  return {true, text};
}

ProbeFinding check_process(const ProcessState& before) {
  const std::vector<std::string> changes = before.changes_until(ProcessState::now());
  if (changes.empty())
    return {true, "leaves the process as it was"};
  return {false, "changes the process it is loaded into: " + listed(changes, "; ")};
}

}  // namespace

std::vector<ProbeFinding> inspect_library(const std::filesystem::path& file) {
  const LibraryNotes host_notes = read_library_notes(host_library());
  const HostBuild host{host_notes.fingerprint, host_notes.needed};
  LibraryNotes notes = read_library_notes(file);
  if (notes.manifest.empty())
    throw PluginError("is a shared library without a Treadle manifest");
  const PluginFile plugin{file,          "", Verdict::kUsable, "", parse_manifest(notes.manifest),
                          notes.build_id};
  static_cast<void>(ProcessState::now());  // asking settles libtorch's thread counts
  const ProcessState before = ProcessState::now();
  const Factories factories = load_plugin_library(plugin, host);
  const LoadedLibrary library(file);
  return {check_exports(library),
          check_binding(library),
          check_run_path(library),
          check_repetition(plugin, host, factories),
          check_defaults(plugin, notes.manifest, factories),
          check_process(before)};
}

}  // namespace treadle::internal
