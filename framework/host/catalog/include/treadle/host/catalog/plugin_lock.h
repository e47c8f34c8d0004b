#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/document.h>
#include <treadle/base/schema.h>
#include <treadle/host/catalog/plugin_catalog.h>

namespace treadle {

/// The usable plugins whose components a resolved document names, by id. `index` is what the
/// document was checked against: a component added in code stands before a plugin's.
std::vector<const PluginFile*> used_plugins(const PluginCatalog& catalog, const SchemaIndex& index,
                                            const nlohmann::json& resolved);

/// Exactly which plugins a run used: written beside every run, and given to `--locked` to run with
/// the same ones or not at all.
class PluginLock {
 public:
  struct Entry {
    std::string id;
    std::string version;
    std::string build_id;
    std::string sha256;  ///< of the file, 64 hexadecimal digits

    bool operator==(const Entry&) const = default;
  };

  /// Reads the files of the plugins. Throws StorageError when one cannot be read.
  static PluginLock of(std::span<const PluginFile* const> plugins);
  /// Throws DocumentError naming the file for what is no lock.
  static PluginLock read(const std::filesystem::path& file);
  /// The same for a lock's text; `source` is its name in messages.
  static PluginLock parse(std::string_view text, const std::string& source);

  std::span<const Entry> entries() const { return entries_; }
  /// As it is written: JSON, a line feed at the end.
  std::string text() const;

  /// Throws PluginError naming every plugin of the lock that is gone or cannot be used, with the
  /// file and the reason.
  void expect_present(const PluginCatalog& catalog) const;

  /// Throws PluginError naming every plugin that the lock does not name, or names otherwise. The
  /// files are hashed now. `source` is the lock's name in the text.
  void expect(std::span<const PluginFile* const> plugins, const std::string& source) const;

 private:
  static PluginLock from(const Document& document);

  std::vector<Entry> entries_;  // by id
};

}  // namespace treadle
