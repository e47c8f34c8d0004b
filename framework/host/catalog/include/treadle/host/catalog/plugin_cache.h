#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/host/catalog/elf_notes.h>
#include <treadle/host/catalog/manifest.h>

namespace treadle {

/// Identifies a state of a file without reading it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  /// The stamp of the file at `path`, links followed; nothing when there is no such file.
  static std::optional<FileStamp> of(const std::filesystem::path& path);

  bool operator==(const FileStamp&) const = default;
};

/// Facts about one file alone, as they were read from it. Whether a plugin fits this host is
/// evaluated anew each time.
struct FileFacts {
  FileStamp stamp;
  std::shared_ptr<const std::string> fingerprint;  ///< many files share one; never null
  std::vector<std::string> needed;
  std::string build_id;
  Manifest manifest;     ///< id is empty when the library is no plugin
  std::string problem;   ///< why the file could not be read as a plugin; empty when it could
  bool foreign = false;  ///< the problem is that it was made for something else

  /// How the file behaved when it was loaded in a process of its own.
  struct Probe {
    std::string host;     ///< by which host it was tried: its build, in a few characters
    std::string problem;  ///< empty when it loaded

    bool operator==(const Probe&) const = default;
  };
  std::optional<Probe> probe;

  /// Reads the file. Never throws for what is in it.
  static FileFacts read(const std::filesystem::path& file, const FileStamp& stamp);
};

/// Caches facts read from files, so that the next command reads only those that changed. It is only
/// an optimisation: a damaged cache file changes no result.
///
/// One thread.
class PluginCache {
 public:
  /// Expects an absolute path; empty means that nothing is kept beyond this object. A cache that is
  /// missing, damaged, of another version, or that everyone may write to is taken as empty.
  explicit PluginCache(std::filesystem::path file);

  /// The facts of the file at `path` now. Null when the file is not there.
  const FileFacts* facts(const std::filesystem::path& path);

  /// Records how the file at `path` behaved. Expects an earlier call of facts(path).
  void remember(const std::filesystem::path& path, FileFacts::Probe probe);

  /// Whether all of these builds have been loaded into one process by this host. Order does not
  /// matter.
  bool have_met(std::string_view host, const std::vector<std::string>& builds) const;
  void remember_meeting(std::string_view host, std::vector<std::string> builds);

  /// Writes what changed since the cache was read, in one instant. A cache that cannot be written
  /// is left as it is.
  void save();

 private:
  void load();

  std::filesystem::path file_;
  struct Meeting {
    std::string host;
    std::vector<std::string> builds;  ///< sorted
  };

  std::map<std::string, FileFacts, std::less<>> files_;
  std::vector<Meeting> meetings_;  ///< none is part of another; the newest last
  bool changed_ = false;
};

}  // namespace treadle
