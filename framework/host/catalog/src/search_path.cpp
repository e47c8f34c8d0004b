#include <treadle/host/catalog/search_path.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/plugin_abi.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;

/// A folder named by the XDG base directory rules: the variable when it is absolute, else below
/// HOME.
fs::path xdg_folder(const EnvironmentReader& environment, const char* variable,
                    const char* below_home) {
  const char* folder = environment(variable);
  if (folder != nullptr && fs::path(folder).is_absolute())
    return folder;
  const char* home = environment("HOME");
  if (home == nullptr || !fs::path(home).is_absolute())
    return {};
  return fs::path(home) / below_home;
}

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

void add_plugin_files(const fs::path& folder, bool with_folders, std::vector<fs::path>& files) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().native().starts_with('.'))
      continue;
    std::error_code ignored;  // gone meanwhile: then it is no plugin
    if (entry->path().extension() == ".so") {
      if (!entry->is_directory(ignored))
        files.push_back(entry->path());
    } else if (with_folders && entry->symlink_status(ignored).type() == fs::file_type::directory) {
      add_plugin_files(entry->path(), false, files);
    }
  }
}

/// The sentence when everyone may write to `path`, which is `file`, what it links to, or a folder.
std::string check_mode(const fs::path& path, const fs::path& file) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || (status.st_mode & S_IWOTH) == 0)
    return "";
  std::string subject;
  if (S_ISDIR(status.st_mode)) {
    subject = "lies in " + path.string() + ", which ";
  } else if (path != file) {
    subject = "links to " + path.string() + ", which ";
  }
  return subject + "can be written by everyone (mode " + octal(status.st_mode) +
         "); run `chmod o-w " + path.string() + "` or allow it with --allow-writable-plugins";
}

/// Adds the folders that the variable lists. False when it is not set.
bool add_listed(const char* variable, const EnvironmentReader& environment,
                std::vector<SearchFolder>& folders) {
  const char* value = environment(variable);
  if (value == nullptr)
    return false;
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(':'));
    const bool is_last = entry.size() == rest.size();
    rest.remove_prefix(is_last ? rest.size() : entry.size() + 1);
    if (!fs::path(entry).is_absolute()) {
      throw UsageError(std::string(variable) + ": expected absolute folders between colons, got " +
                       quote_text(entry));
    }
    folders.push_back({fs::path(entry).lexically_normal(), variable});
  }
  return true;
}

}  // namespace

const char* read_environment(const char* name) {
  return ::secure_getenv(name);
}

std::vector<SearchFolder> search_path(std::span<const fs::path> plugin_dirs,
                                      const fs::path& libraries,
                                      const EnvironmentReader& environment) {
  std::vector<SearchFolder> folders;
  for (const fs::path& folder : plugin_dirs) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      throw UsageError("--plugin-dir " + folder.string() + ": there is no such folder");
    }
    folders.push_back({fs::absolute(folder).lexically_normal(), "--plugin-dir"});
  }
  add_listed("TREADLE_PLUGIN_PATH", environment, folders);
  if (const fs::path data = xdg_folder(environment, "XDG_DATA_HOME", ".local/share");
      !data.empty()) {
    folders.push_back({data / "treadle" / "plugins", "user"});
  }
  if (!add_listed("TREADLE_PLUGIN_SYSTEM_PATH", environment, folders)) {
    folders.push_back(
        {libraries / "treadle" / "plugins" / std::to_string(TREADLE_ABI_MAJOR), "installed"});
  }
  return folders;
}

fs::path default_cache_file(const EnvironmentReader& environment) {
  const fs::path folder = xdg_folder(environment, "XDG_CACHE_HOME", ".cache");
  return folder.empty() ? fs::path() : folder / "treadle" / "plugins.json";
}

std::vector<fs::path> plugin_files(const fs::path& folder) {
  std::vector<fs::path> files;
  add_plugin_files(folder, true, files);
  std::sort(files.begin(), files.end());
  return files;
}

std::string writable_by_others(const fs::path& file) {
  std::vector<fs::path> places{file, file.parent_path()};
  std::error_code error;
  if (fs::is_symlink(file, error)) {
    if (const fs::path target = fs::canonical(file, error); !error) {
      places = {target, file.parent_path(), target.parent_path()};
    }
  }
  for (const fs::path& place : places) {
    if (std::string sentence = check_mode(place, file); !sentence.empty())
      return sentence;
  }
  return "";
}

}  // namespace treadle
