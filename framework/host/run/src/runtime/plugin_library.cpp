#include "runtime/plugin_library.h"

// Without it Boost.DLL needs Boost.Filesystem, and its headers export symbols.
#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>

#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/host/catalog/elf_notes.h>
#include <treadle/host/catalog/plugin_cache.h>

namespace treadle::internal {
namespace {

std::string words(const InterfaceTable& interfaces, const ComponentKey& key) {
  const std::string_view word = interfaces.word(key.first);
  return (word.empty() ? key.first : std::string(word)) + " " + quote_text(key.second);
}

/// Keeps what one entry registers.
class CollectingRegistrar final : public Registrar {
 public:
  explicit CollectingRegistrar(const Manifest& manifest)
      : interfaces_(manifest.interface_table()) {}

  Factories factories;

 private:
  void do_add(std::string_view interface_id, std::string_view name,
              ComponentFactory factory) override {
    const ComponentKey key{interface_id, name};
    if (!factories.emplace(key, std::move(factory)).second) {
      throw PluginError("it registers the " + words(interfaces_, key) + " twice");
    }
  }

  const InterfaceTable interfaces_;
};

/// Takes the text of an entry that fails. Called by the plugin's C function: nothing may escape.
void keep_error(void* context, const char* text) noexcept {
  try {
    *static_cast<std::string*>(context) = text == nullptr ? "" : text;
  } catch (...) {
    // Out of memory: the entry's status still says that it failed.
  }
}

[[noreturn]] void fail(const std::string& sentence) {
  throw PluginError(sentence);
}

/// The file may have been replaced since it was checked, and a library of another build must not
/// run.
void expect_unchanged(const PluginFile& plugin, const HostBuild& host) {
  const LibraryNotes notes = read_library_notes(plugin.file);
  if (notes.manifest.empty() || notes.build_id != plugin.build_id ||
      parse_manifest(notes.manifest) != plugin.manifest) {
    fail("was replaced while this command ran; run it again");
  }
  const std::string mismatch = explain_mismatch(notes.fingerprint, notes.needed, host);
  if (!mismatch.empty())
    fail(mismatch);
}

boost::dll::shared_library open(const PluginFile& plugin) {
  using boost::dll::load_mode::type;
  // Boost has no name for NODELETE, and hands the bits through.
  const auto mode = static_cast<type>(boost::dll::load_mode::rtld_now |
                                      boost::dll::load_mode::rtld_local | RTLD_NODELETE);
  // The path is absolute, so there is no search; no decorations, so there is no second try.
  boost::dll::shared_library library;
  boost::dll::fs::error_code error;
  library.load(plugin.file.string(), mode, error);
  if (error) {
    // Boost's own code is always "Bad file descriptor".
    const char* reason = ::dlerror();
    throw NotLoadable("cannot be loaded: " +
                      (reason != nullptr ? std::string(reason) : error.message()));
  }
  return library;
}

/// dlsym() also finds the entry of a plugin that this library is merely linked to.
void expect_own(const PluginFile& plugin, const void* entry) {
  Dl_info info{};
  const bool known = ::dladdr(entry, &info) != 0 && info.dli_fname != nullptr;
  const std::string owner = known ? info.dli_fname : "another library";
  const std::optional<FileStamp> here = FileStamp::of(plugin.file);
  const std::optional<FileStamp> there = known ? FileStamp::of(owner) : std::nullopt;
  if (here && there && here->device == there->device && here->inode == there->inode)
    return;
  fail("has no entry of its own: the one found belongs to " + owner + ", which it is linked to");
}

Factories register_components(const PluginFile& plugin, const boost::dll::shared_library& library) {
  const std::string symbol(kPluginEntrySymbol);
  if (!library.has(symbol)) {
    fail("has no entry (" + symbol +
         "); one of its source files must say TREADLE_PLUGIN(registrar) { … }");
  }
  const TreadlePluginEntry entry = &library.get<int(const TreadlePluginHost*)>(symbol);
  expect_own(plugin, reinterpret_cast<const void*>(entry));
  CollectingRegistrar registrar(plugin.manifest);
  std::string reason;
  const TreadlePluginHost host{
      sizeof(TreadlePluginHost),           TREADLE_ABI_MAJOR, TREADLE_ABI_MINOR,
      static_cast<Registrar*>(&registrar), keep_error,        &reason};
  const int status = entry(&host);
  if (status != 0) {
    fail("failed in its entry: " +
         (reason.empty() ? "it returned " + std::to_string(status) : reason));
  }
  return std::move(registrar.factories);
}

void compare_with_manifest(const PluginFile& plugin, const Factories& factories) {
  const InterfaceTable interfaces = plugin.manifest.interface_table();
  std::set<ComponentKey> listed;
  for (const ManifestComponent& component : plugin.manifest.components) {
    listed.emplace(component.interface_id, component.name);
  }
  std::string differences;
  const auto add = [&differences](const std::string& difference) {
    differences += (differences.empty() ? "" : "; it ") + difference;
  };
  for (const auto& [key, factory] : factories) {
    if (!listed.contains(key)) {
      add("registers the " + words(interfaces, key) + ", which its manifest does not list (add " +
          key.second + ".schema.json beside its source)");
    }
  }
  for (const ComponentKey& key : listed) {
    if (!factories.contains(key)) {
      add("does not register the " + words(interfaces, key) +
          ", which its manifest lists (add it to TREADLE_PLUGIN, or remove " + key.second +
          ".schema.json)");
    }
  }
  if (!differences.empty())
    fail(differences);
}

}  // namespace

Factories load_plugin_library(const PluginFile& plugin, const HostBuild& host) {
  expect_unchanged(plugin, host);
  // Loaded with NODELETE: nothing depends on this handle.
  const boost::dll::shared_library library = open(plugin);
  Factories factories = register_components(plugin, library);
  compare_with_manifest(plugin, factories);
  return factories;
}

}  // namespace treadle::internal
