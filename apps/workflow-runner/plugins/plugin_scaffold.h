#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// `plugins new`: a complete plugin project to begin from. What it consists of lies in template
/// files: `common/` goes into every project, `<interface>/` into those of one interface and wins
/// where both have a file. An interface has a template because there is a folder with its word.
namespace treadle::cli {

/// What somebody wants to write.
struct NewPlugin {
  std::string interface;         ///< its word: "optimizer"
  std::string name;              ///< the component's, in snake_case: "inverse_sqrt"
  std::string id;                ///< the plugin's; empty: "org.example.inverse-sqrt"
  std::filesystem::path folder;  ///< empty: "inverse-sqrt", below the working folder
};

/// What was written.
struct PluginProject {
  std::filesystem::path folder;
  std::vector<std::string> files;  ///< as seen from `folder`, sorted
};

/// Writes the project. Throws UsageError for a name, an id or an interface that is none, and for a
/// folder with something in it; PluginError when `templates` is not there; StorageError when the
/// disk refuses. Nothing new is left behind then.
PluginProject write_plugin_project(const NewPlugin& plugin, const std::filesystem::path& templates);

/// The files of a project with all placeholders replaced, by their path in it. Throws as above.
std::map<std::string, std::string> plugin_project_files(const NewPlugin& plugin,
                                                        const std::filesystem::path& templates);

/// What to type next. `prefix` is where Treadle is installed; empty when CMake finds it by itself.
std::vector<std::string> next_commands(const PluginProject& project,
                                       const std::filesystem::path& prefix);

/// What was written and what comes next, for people and for programs.
std::string project_text(const PluginProject& project, const std::vector<std::string>& commands);
nlohmann::json project_json(const PluginProject& project, const std::vector<std::string>& commands);

}  // namespace treadle::cli
