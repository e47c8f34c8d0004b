#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/interfaces.h>

#include <treadle/host/catalog/fingerprint.h>
#include <treadle/host/catalog/manifest.h>
#include <treadle/host/catalog/plugin_probe.h>
#include <treadle/host/catalog/search_path.h>

namespace treadle {

class PluginCache;
struct FileFacts;

enum class Verdict {
  kUsable,        ///< can be loaded
  kNotAPlugin,    ///< a shared library without our notes
  kInvalid,       ///< cannot be read: text, truncated, a damaged manifest
  kIncompatible,  ///< built for another machine, libtorch, standard library or SDK
  kRefused,       ///< everyone may write to it
  kDisabled,      ///< the user disabled it
  kBroken,        ///< failed, crashed or hung when it was loaded in a process of its own
  kShadowed       ///< the same plugin was found earlier in the search path
};

/// "usable", "not a plugin", "invalid", "incompatible", "refused", "disabled", "broken",
/// "shadowed".
std::string_view verdict_word(Verdict verdict);

/// One `*.so` that was found.
struct PluginFile {
  /// The origin of a file that was named by itself.
  static constexpr std::string_view kNamed = "--plugin";
  /// The origin of one that is only examined.
  static constexpr std::string_view kExamined = "outside the search path";

  std::filesystem::path file;
  std::string origin;  ///< who named its folder, see SearchFolder, or one of those above
  Verdict verdict = Verdict::kUsable;
  std::string reason;    ///< empty when usable, else a sentence that begins with a verb
  Manifest manifest;     ///< empty id unless it could be read
  std::string build_id;  ///< the linker's; identifies the binary in run records

  /// "org.treadle.optimizers 1.0.0 (/usr/lib/…/optimizers.so)", or the file alone.
  std::string title() const;
};

/// A component of a usable plugin. Points into the catalog it came from.
struct CatalogComponent {
  const PluginFile* plugin = nullptr;
  const ManifestComponent* component = nullptr;

  std::string qualified_name() const { return plugin->manifest.id + "/" + component->name; }
};

/// The component that a name stands for, or why there is none: one sentence.
struct Lookup {
  std::optional<CatalogComponent> found;
  std::string problem;
  bool plugin_at_fault = false;  ///< a plugin offers it, but cannot be used
};

/// Which plugins are tried out in a helper process before they count as usable.
enum class Probing {
  kNever,
  kChanged,  ///< those that this host has not tried yet
  kAlways
};

struct CatalogOptions {
  std::vector<SearchFolder> folders;  ///< as search_path() gives them
  std::filesystem::path cache_file;   ///< as default_cache_file() gives it; empty for none
  /// Uses plugins although everyone may write to their file or folder.
  bool allow_writable = false;
  /// Single plugins, before everything in the folders. Absolute.
  std::vector<std::filesystem::path> files;
  /// Files that are looked at as well, before all others: they may lie anywhere. Absolute.
  std::vector<std::filesystem::path> examined;
  /// For commands that report verdicts: one of `files` that cannot be used has its verdict, like
  /// any other file, and is no error.
  bool only_report = false;
  /// Plugins with these ids are not used; where `only` has ids, no others are.
  std::set<std::string, std::less<>> disabled;
  std::set<std::string, std::less<>> only;
  Probing probing = Probing::kNever;
  ProbeOptions probe;
  /// The build that plugins must fit. Unset, it is read from host_library().
  std::optional<HostBuild> host;
};

/// All plugins found, without running any of them in this process.
///
/// Made by scan(), then immutable; safe to use from any thread. With a warm cache a scan costs one
/// stat() a file; schemas are read from the library's file on request. Plugins are probed in a
/// helper process.
class PluginCatalog {
 public:
  /// Looks through the folders. Whatever a file contains, it becomes a verdict. Throws PluginError
  /// when the host's own build cannot be read, and for one of CatalogOptions::files that cannot be
  /// used.
  static std::shared_ptr<const PluginCatalog> scan(CatalogOptions options);

  PluginCatalog(const PluginCatalog&) = delete;
  PluginCatalog& operator=(const PluginCatalog&) = delete;

  /// Every file in the order it was found, also those that cannot be used.
  std::span<const PluginFile> plugins() const { return plugins_; }
  std::span<const SearchFolder> folders() const { return options_.folders; }
  /// What plugins must fit.
  const HostBuild& host() const { return *options_.host; }
  /// The file in which verdicts are cached; empty for none.
  const std::filesystem::path& cache_file() const { return options_.cache_file; }
  /// Limitations of the scan, one sentence each: no plugin could be probed.
  std::span<const std::string> warnings() const { return warnings_; }

  /// Treadle's interfaces and those that usable plugins declare.
  const InterfaceTable& interfaces() const { return interfaces_; }

  /// All components of usable plugins that implement the interface ("optimizer"; "" for all), by
  /// name, then by plugin.
  std::vector<CatalogComponent> components(std::string_view interface_word = "") const;

  /// Resolves a plain name ("adamw") or a qualified one ("org.treadle.optimizers/adamw"). A plain
  /// name that several plugins offer is a problem that lists them.
  Lookup find(std::string_view interface_word, std::string_view name) const;

  /// The usable plugin with this id, or null.
  const PluginFile* plugin(std::string_view id) const;

  /// Why there is no usable plugin with this id, as a sentence goes on after its name: where it was
  /// looked for, and which files cannot be used. Empty when there is one.
  std::string why_missing(std::string_view id) const;

  /// Makes sure that these plugins can be loaded into one process: two that work alone may end it
  /// together (the same TORCH_LIBRARY namespace). They are tried out unless they have met before.
  /// Throws PluginError naming those that cannot.
  void expect_loadable_together(std::span<const PluginFile* const> plugins) const;

  /// The parameters' schema of a component of this catalog. The reference lives as long as the
  /// catalog. Throws PluginError when the file has changed since the scan and no longer has it.
  const nlohmann::json& schema(const CatalogComponent& component) const;

 private:
  explicit PluginCatalog(CatalogOptions options);
  void look_through_folders(PluginCache& cache);
  void look_at(PluginCache& cache, const std::filesystem::path& file, const std::string& origin);
  void try_out(PluginCache& cache);
  std::string host_mark() const;
  void shadow_duplicates();
  void expect_named_files() const;
  void collect_interfaces();
  void index_components();
  PluginFile assess(const std::filesystem::path& file, const std::string& origin,
                    const FileFacts& facts) const;
  std::vector<std::string> known_elsewhere(std::string_view word, std::string_view name) const;
  Lookup why_unknown(std::string_view word, std::string_view name) const;
  Lookup why_unknown_qualified(std::string_view word, std::string_view id,
                               std::string_view name) const;
  std::string places() const;
  std::string unreadable_files() const;

  CatalogOptions options_;
  std::vector<PluginFile> plugins_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;  ///< device and inode of every file
  std::string host_build_id_;
  std::vector<std::string> warnings_;
  InterfaceTable interfaces_;
  /// (interface word, name) -> the plugins that offer it.
  std::multimap<std::pair<std::string, std::string>, CatalogComponent> by_name_;

  mutable std::mutex mutex_;  // guards what is read of the files on request
  mutable std::map<const PluginFile*, std::unique_ptr<const ManifestSchemas>> manifests_;
  mutable std::map<const ManifestComponent*, const nlohmann::json*> schemas_;  ///< those checked
};

}  // namespace treadle
