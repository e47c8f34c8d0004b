#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace treadle {

/// What stands between two fences of a page.
struct Fragment {
  std::string language;
  std::string word;  ///< behind the language
  std::string text;
  int line = 0;  ///< of the fence
};

std::vector<std::string> lines_of(const std::string& text);

std::vector<Fragment> fragments_of(const std::string& page);

/// The targets of links to files, without "#place". C++ between fences has none, whatever it looks
/// like.
std::vector<std::string> links_in(const std::string& page);

/// A command that a page shows after `$ `, and what it prints.
struct ShownCommand {
  std::string command;
  std::string output;
};

std::vector<ShownCommand> commands_in(const std::string& fragment);

/// Whether a file of the project in `folder` has these lines in a row. White space at the ends of
/// lines does not count.
bool is_excerpt(const std::string& lines, const std::filesystem::path& folder);

}  // namespace treadle
