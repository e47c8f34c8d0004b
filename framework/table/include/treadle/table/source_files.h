#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/config.h>

namespace treadle::table {

/// The parameter `key` of a source of one or several files: a path or pattern, or a list of them.
std::vector<std::string> paths_of(const Config& config, const std::string& key);

/// The files that these stand for, in order; of a pattern those that match, in order of the bytes
/// of their paths. Patterns have `*`, `?` or `[…]`, as in a shell, where no file has that very
/// name; a `*` matches no `/` and no leading dot. Files without a pattern need not exist: opening
/// them fails.
///
/// Throws DataError for a pattern without a match, listing its folder, and for a file that is named
/// twice.
std::vector<std::filesystem::path> find_files(const std::vector<std::string>& paths);

/// Changes when the file is written; empty where there is no file, but a pipe or nothing.
std::string file_stamp(const std::filesystem::path& file);

/// For messages: "a.csv", or "a.csv and 3 more files".
std::string shown_files(const std::vector<std::filesystem::path>& files);

/// The files that a source reads one after the other as one table. A position of the table is a
/// file and a line or row in it, as one number.
class SourceFiles {
 public:
  /// Touches nothing.
  explicit SourceFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  /// Expected before all else but shown(). Throws as find_files() does.
  void find() { files_ = find_files(paths_); }
  std::size_t size() const { return files_.size(); }
  const std::filesystem::path& operator[](std::size_t file) const { return files_.at(file); }

  static std::int64_t position(std::size_t file, std::int64_t line) {
    return static_cast<std::int64_t>(file) * kLines + line;
  }
  static std::int64_t line_of(std::int64_t position) { return position % kLines; }
  /// Throws DataError where there are no more so many files.
  std::size_t file_of(std::int64_t position) const;

  std::string shown() const;
  std::string shown(std::size_t file) const;
  /// The hash of the file, or over those of all.
  std::string hash() const;
  /// Throws DataError at `place` where `names`, of a later file, are not those of the first one.
  void expect_columns(const std::string& place, const std::vector<std::string>& names,
                      const std::vector<std::string>& of_first) const;

 private:
  static constexpr std::int64_t kLines = std::int64_t{1} << 40;

  std::vector<std::string> paths_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace treadle::table
