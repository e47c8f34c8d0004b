#include <treadle/table/source_files.h>

#include <glob.h>

#include <algorithm>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/base/path_words.h>

namespace treadle::table {
namespace {

namespace fs = std::filesystem;

/// Lists a folder without a matching file.
std::string shown_folder(const fs::path& folder) {
  constexpr std::size_t kMostNames = 5;
  const fs::path there = folder.empty() ? fs::path(".") : folder;
  std::error_code error;
  std::set<std::string> names;
  for (fs::directory_iterator entry(there, error), end; !error && entry != end;
       entry.increment(error)) {
    names.insert(entry->path().filename().string() + (entry->is_directory(error) ? "/" : ""));
  }
  if (error)
    return "the folder " + shown_path(there) + " does not exist";
  if (names.empty())
    return "the folder " + shown_path(there) + " is empty";
  std::string text = shown_path(there) + " has ";
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (count == kMostNames)
      break;
    text += (count++ == 0 ? "" : ", ") + name;
  }
  const std::size_t others = names.size() - count;
  return others == 0 ? text : text + " and " + std::to_string(others) + " more";
}

/// The folder of a pattern, up to where the pattern begins.
fs::path plain_folder(const std::string& pattern) {
  const std::string plain = pattern.substr(0, pattern.find_first_of("*?["));
  return plain.substr(0, plain.rfind('/') == std::string::npos ? 0 : plain.rfind('/') + 1);
}

std::vector<fs::path> match(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<fs::path> files;
  std::error_code error;
  for (std::size_t i = 0; i < found.gl_pathc; ++i) {
    if (!fs::is_directory(found.gl_pathv[i], error))
      files.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  if (status != 0 && status != GLOB_NOMATCH)
    throw DataError(shown_path(pattern) + ": the folder cannot be read");
  if (files.empty()) {
    throw DataError(shown_path(pattern) + ": no file matches; " +
                    shown_folder(plain_folder(pattern)));
  }
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return files;
}

}  // namespace

std::vector<std::string> paths_of(const Config& config, const std::string& key) {
  const nlohmann::json& value = config.json().at(key);
  if (value.is_string())
    return {value.get<std::string>()};
  if (!value.is_array() || value.empty())
    config.fail(key, "must be a path, or a list of paths");
  std::vector<std::string> paths;
  for (const nlohmann::json& path : value) {
    if (!path.is_string() || path.get<std::string>().empty())
      config.fail(key, "must be a path, or a list of paths");
    paths.push_back(path.get<std::string>());
  }
  return paths;
}

std::vector<fs::path> find_files(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const std::string& path : paths) {
    if (path.find_first_of("*?[") == std::string::npos || fs::exists(path, error)) {
      files.emplace_back(path);
      continue;
    }
    const std::vector<fs::path> matches = match(path);
    files.insert(files.end(), matches.begin(), matches.end());
  }
  std::set<fs::path> seen;
  for (const fs::path& file : files) {
    if (!seen.insert(file.lexically_normal()).second)
      throw DataError(shown_path(file) + ": is among the files of \"path\" twice");
  }
  return files;
}

std::string file_stamp(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return "";
  const auto written = fs::last_write_time(file, error).time_since_epoch().count();
  return std::to_string(fs::file_size(file, error)) + " " + std::to_string(written);
}

std::string shown_files(const std::vector<fs::path>& files) {
  if (files.empty())
    return "no file";
  if (files.size() == 1)
    return shown_path(files[0]);
  return shown_path(files[0]) + " and " + std::to_string(files.size() - 1) +
         (files.size() == 2 ? " more file" : " more files");
}

std::size_t SourceFiles::file_of(std::int64_t position) const {
  const auto file = static_cast<std::size_t>(position / kLines);
  if (file >= files_.size())
    throw DataError(shown() + ": the data has fewer files than when it was read before");
  return file;
}

std::string SourceFiles::shown() const {
  return files_.empty() ? shown_path(paths_.at(0)) : shown_files(files_);
}

std::string SourceFiles::shown(std::size_t file) const {
  return shown_path(files_.at(file));
}

std::string SourceFiles::hash() const {
  if (files_.size() == 1)
    return hash_file(files_[0]);
  std::string all;
  for (const fs::path& file : files_)
    all += hash_file(file) + "\n";
  return hash_text(all);
}

void SourceFiles::expect_columns(const std::string& place, const std::vector<std::string>& names,
                                 const std::vector<std::string>& of_first) const {
  if (names == of_first)
    return;
  const auto fail = [&](const std::string& found) {
    throw DataError(place + ": " + found + "; all files of \"path\" need the same columns in the " +
                    "same order");
  };
  if (names.size() != of_first.size()) {
    fail("expected " + std::to_string(of_first.size()) + " columns as in " + shown(0) + ", got " +
         std::to_string(names.size()));
  }
  std::size_t i = 0;
  while (names[i] == of_first[i])
    ++i;
  fail("column " + std::to_string(i + 1) + " is " + quote_text(names[i]) + ", but " +
       quote_text(of_first[i]) + " in " + shown(0));
}

}  // namespace treadle::table
