#include <treadle/host/run/plugin_loader.h>

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

namespace treadle {
namespace {

using ComponentKey = std::pair<std::string, std::string>;  // interface id, name
using Factories = std::map<ComponentKey, ComponentFactory>;

std::string words(const ComponentKey& key) {
  const std::string_view word = interface_word(key.first);
  return (word.empty() ? key.first : std::string(word)) + " " + quote_text(key.second);
}

/// Keeps what one entry registers.
class CollectingRegistrar final : public Registrar {
 public:
  Factories factories;

 private:
  void do_add(std::string_view interface_id, std::string_view name,
              ComponentFactory factory) override {
    const ComponentKey key{interface_id, name};
    if (!factories.emplace(key, std::move(factory)).second) {
      throw PluginError("it registers the " + words(key) + " twice");
    }
  }
};

/// Takes the text of an entry that fails. Called by the plugin's C function: nothing may escape.
void keep_error(void* context, const char* text) noexcept {
  try {
    *static_cast<std::string*>(context) = text == nullptr ? "" : text;
  } catch (...) {
    // Out of memory: the entry's status still says that it failed.
  }
}

ComponentEntry entry_of(const PluginCatalog& catalog, const CatalogComponent& component) {
  const Manifest& manifest = component.plugin->manifest;
  return {
      component.component->interface_id, component.component->name, manifest.id, manifest.version,
      component.component->summary,      catalog.schema(component)};
}

}  // namespace

/// One plugin's library.
class PluginLoader::Module {
 public:
  Module(const PluginFile& plugin, const HostBuild& host) : plugin_(plugin), host_(host) {}

  ComponentFactory factory(const ComponentKey& key) {
    const std::lock_guard lock(mutex_);
    if (failure_)
      throw PluginError(*failure_);
    if (!library_)
      load();
    return factories_.at(key);
  }

 private:
  void load() {
    try {
      expect_unchanged();
      boost::dll::shared_library library = open();
      Factories factories = register_components(library);
      compare_with_manifest(factories);
      factories_ = std::move(factories);
      library_ = std::move(library);
    } catch (const PluginError& error) {
      failure_ = error.what();
      throw;
    }
  }

  [[noreturn]] void fail(const std::string& sentence) const {
    throw PluginError("plugin " + plugin_.title() + " " + sentence);
  }

  /// The file may have been replaced since it was judged, and a library of another build must not
  /// run.
  void expect_unchanged() const {
    try {
      const LibraryNotes notes = read_library_notes(plugin_.file);
      if (notes.manifest.empty() || notes.build_id != plugin_.build_id ||
          parse_manifest(notes.manifest) != plugin_.manifest) {
        throw PluginError("was replaced while this command ran; run it again");
      }
      const std::string mismatch = explain_mismatch(notes.fingerprint, notes.needed, host_);
      if (!mismatch.empty())
        throw PluginError(mismatch);
    } catch (const PluginError& error) {
      fail(error.what());
    }
  }

  boost::dll::shared_library open() const {
    using boost::dll::load_mode::type;
    // Boost has no name for NODELETE, and hands the bits through.
    const auto mode = static_cast<type>(boost::dll::load_mode::rtld_now |
                                        boost::dll::load_mode::rtld_local | RTLD_NODELETE);
    // The path is absolute, so there is no search; no decorations, so there is no second try.
    boost::dll::shared_library library;
    boost::dll::fs::error_code error;
    library.load(plugin_.file.string(), mode, error);
    if (error) {
      // Boost's own code is always "Bad file descriptor".
      const char* reason = ::dlerror();
      fail("cannot be loaded: " + (reason != nullptr ? std::string(reason) : error.message()));
    }
    return library;
  }

  Factories register_components(const boost::dll::shared_library& library) const {
    const std::string symbol(kPluginEntrySymbol);
    if (!library.has(symbol)) {
      fail("has no entry (" + symbol +
           "); one of its source files must say TREADLE_PLUGIN(registrar) { … }");
    }
    const TreadlePluginEntry entry = &library.get<int(const TreadlePluginHost*)>(symbol);
    expect_own(reinterpret_cast<const void*>(entry));
    CollectingRegistrar registrar;
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

  /// dlsym() also finds the entry of a plugin that this library is merely linked to.
  void expect_own(const void* entry) const {
    Dl_info info{};
    const bool known = ::dladdr(entry, &info) != 0 && info.dli_fname != nullptr;
    const std::string owner = known ? info.dli_fname : "another library";
    const std::optional<FileStamp> here = FileStamp::of(plugin_.file);
    const std::optional<FileStamp> there = known ? FileStamp::of(owner) : std::nullopt;
    if (here && there && here->device == there->device && here->inode == there->inode)
      return;
    fail("has no entry of its own: the one found belongs to " + owner + ", which it is linked to");
  }

  void compare_with_manifest(const Factories& factories) const {
    std::set<ComponentKey> listed;
    for (const ManifestComponent& component : plugin_.manifest.components) {
      listed.emplace(component.interface_id, component.name);
    }
    std::string differences;
    const auto add = [&differences](const std::string& difference) {
      differences += (differences.empty() ? "" : "; it ") + difference;
    };
    for (const auto& [key, factory] : factories) {
      if (!listed.contains(key)) {
        add("registers the " + words(key) + ", which its manifest does not list (add " +
            key.second + ".schema.json beside its source)");
      }
    }
    for (const ComponentKey& key : listed) {
      if (!factories.contains(key)) {
        add("does not register the " + words(key) +
            ", which its manifest lists (add it to TREADLE_PLUGIN, or remove " + key.second +
            ".schema.json)");
      }
    }
    if (!differences.empty())
      fail(differences);
  }

  const PluginFile& plugin_;
  const HostBuild& host_;
  std::mutex mutex_;  // held while the plugin loads, so that its entry runs once
  std::optional<boost::dll::shared_library> library_;
  std::optional<std::string> failure_;
  Factories factories_;
};

PluginLoader::PluginLoader(std::shared_ptr<const PluginCatalog> catalog)
    : catalog_(std::move(catalog)) {}

PluginLoader::~PluginLoader() = default;

std::vector<ComponentEntry> PluginLoader::entries() const {
  std::vector<ComponentEntry> entries;
  for (const CatalogComponent& component : catalog_->components()) {
    entries.push_back(entry_of(*catalog_, component));
  }
  return entries;
}

ComponentEntry PluginLoader::find(std::string_view interface_id, std::string_view name) const {
  const Lookup lookup = catalog_->find(interface_word(interface_id), name);
  if (!lookup.found)
    throw PluginError(lookup.problem);
  return entry_of(*catalog_, *lookup.found);
}

PluginLoader::Module& PluginLoader::module(const std::string& plugin_id) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Module>& module = modules_[plugin_id];
  if (!module) {
    const PluginFile* plugin = catalog_->plugin(plugin_id);
    TREADLE_EXPECTS(plugin != nullptr, "there is no usable plugin " + quote_text(plugin_id));
    module = std::make_unique<Module>(*plugin, catalog_->host());
  }
  return *module;
}

ComponentFactory PluginLoader::load(const ComponentEntry& entry) {
  return module(entry.plugin).factory({entry.interface_id, entry.name});
}

}  // namespace treadle
