#include "plugins/plugin_scaffold.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;  // by their path in the project
using Placeholders = std::map<std::string, std::string, std::less<>>;

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// "InverseSqrt" for "inverse_sqrt".
std::string camel_case(std::string_view name) {
  std::string text;
  bool begins_word = true;
  for (const char c : name) {
    if (c != '_')
      text += begins_word && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins_word = c == '_';
  }
  return text;
}

void expect_interface(const std::string& word) {
  if (!InterfaceTable().id(word).empty())
    return;
  std::vector<std::string> words;
  std::string list;
  for (const InterfaceName& interface : interface_names()) {
    words.emplace_back(interface.word);
    list += (list.empty() ? "" : ", ") + words.back();
  }
  throw UsageError("there is no interface " + quote_text(word) + did_you_mean(word, words) +
                   "\nthere are " + list);
}

void expect_text(const std::string& text, const char* pattern, const std::string& what) {
  if (!std::regex_match(text, std::regex(pattern)))
    throw UsageError(what + ", got " + quote_text(text));
}

/// What stands for each placeholder. Throws UsageError for what is no name or no id.
Placeholders placeholders_of(const NewPlugin& plugin) {
  expect_interface(plugin.interface);
  expect_text(plugin.name, "[a-z][a-z0-9]*(_[a-z0-9]+)*",
              "NAME must be in snake_case, lower case letters and digits, such as "
              "\"inverse_sqrt\"");
  const std::string id = plugin.id.empty() ? "org.example." + with_dashes(plugin.name) : plugin.id;
  expect_text(id, "[a-z][a-z0-9-]*(\\.[a-z0-9][a-z0-9-]*)+",
              "--id must be a reversed domain name in lower case, such as "
              "\"org.example.optimizers\"");
  return {{"name", plugin.name},
          {"Name", camel_case(plugin.name)},
          {"id", id},
          {"interface", plugin.interface}};
}

/// `text` with every `@word@` replaced; other at signs stay. `file` is what messages name.
std::string filled(const std::string& text, const Placeholders& placeholders,
                   const fs::path& file) {
  static const std::regex kPlaceholder("@([A-Za-z_]+)@");
  std::string result;
  auto rest = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), kPlaceholder), end; match != end;
       ++match) {
    const auto found = placeholders.find(match->str(1));
    TREADLE_EXPECTS(found != placeholders.end(),
                    file.string() + " has an unknown placeholder: " + match->str());
    result.append(rest, (*match)[0].first).append(found->second);
    rest = (*match)[0].second;
  }
  return result.append(rest, text.cend());
}

std::string read_template(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream)
    throw PluginError(file.string() + ": cannot be read; this installation of Treadle is damaged");
  return text;
}

void add_files(const fs::path& folder, const Placeholders& placeholders, Files& files) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory())
      continue;
    const fs::path& file = entry->path();
    const std::string name = file.lexically_relative(folder).generic_string();
    files[filled(name, placeholders, file)] = filled(read_template(file), placeholders, file);
  }
  if (error) {
    throw PluginError(
        folder.string() + ": the templates for new plugins are not there (" + error.message() +
        "); they belong to the development files of Treadle: install its package treadle-dev");
  }
}

void expect_empty(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status))
    return;
  if (!fs::is_directory(status))
    throw UsageError(folder.string() +
                     ": is a file; name a folder that is new or empty with --dir");
  const bool is_empty = fs::is_empty(folder, error);
  if (error)
    throw StorageError(folder.string() + ": cannot be read (" + error.message() + ")");
  if (!is_empty) {
    throw UsageError(folder.string() +
                     ": there is something in it; name a folder that is new or empty with --dir");
  }
}

/// Folders and files that came to be; takes them away again unless they are kept.
class Creation {
 public:
  Creation() = default;
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;
  ~Creation() {
    std::error_code ignored;
    for (auto path = made_.rbegin(); path != made_.rend(); ++path)
      fs::remove(*path, ignored);
  }

  void make_folder(const fs::path& folder) {
    if (folder.empty() || fs::is_directory(folder))
      return;
    make_folder(folder.parent_path());
    std::error_code error;
    fs::create_directory(folder, error);
    if (error)
      throw StorageError(folder.string() + ": cannot be made (" + error.message() + ")");
    made_.push_back(folder);
  }
  void make_file(const fs::path& file, std::string_view text) {
    make_folder(file.parent_path());
    write_file_atomically(file, text);
    made_.push_back(file);
  }
  void keep() { made_.clear(); }

 private:
  std::vector<fs::path> made_;
};

/// A word as a shell takes it.
std::string shell_word(const fs::path& path) {
  const std::string& text = path.native();
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos)
    return text;
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

Files plugin_project_files(const NewPlugin& plugin, const fs::path& templates) {
  const Placeholders placeholders = placeholders_of(plugin);
  Files files;
  add_files(templates / "common", placeholders, files);
  add_files(templates / plugin.interface, placeholders, files);
  return files;
}

PluginProject write_plugin_project(const NewPlugin& plugin, const fs::path& templates) {
  const Files files = plugin_project_files(plugin, templates);
  PluginProject project;
  project.folder = plugin.folder.empty() ? fs::path(with_dashes(plugin.name)) : plugin.folder;
  expect_empty(project.folder);
  Creation creation;
  creation.make_folder(project.folder);
  for (const auto& [name, text] : files) {
    creation.make_file(project.folder / name, text);
    project.files.push_back(name);
  }
  creation.keep();
  return project;
}

std::vector<std::string> next_commands(const PluginProject& project, const fs::path& prefix) {
  const std::string build = shell_word(project.folder / "build");
  return {"cmake -S " + shell_word(project.folder) + " -B " + build +
              (prefix.empty() ? "" : " -DCMAKE_PREFIX_PATH=" + shell_word(prefix)),
          "cmake --build " + build, "ctest --test-dir " + build + " --output-on-failure"};
}

std::string project_text(const PluginProject& project, const std::vector<std::string>& commands) {
  std::string text = "Wrote " + project.folder.string() + ":\n";
  for (const std::string& file : project.files)
    text += "  " + file + "\n";
  text += "\nNext:\n";
  for (const std::string& command : commands)
    text += "  " + command + "\n";
  return text + "\nREADME.md there describes its use.\n";
}

nlohmann::json project_json(const PluginProject& project,
                            const std::vector<std::string>& commands) {
  return {{"folder", fs::absolute(project.folder).lexically_normal().string()},
          {"files", project.files},
          {"next", commands}};
}

}  // namespace treadle::cli
