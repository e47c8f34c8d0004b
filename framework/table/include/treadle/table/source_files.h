#pragma once

#include <filesystem>
#include <string>
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

}  // namespace treadle::table
