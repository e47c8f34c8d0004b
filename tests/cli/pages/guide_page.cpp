#include "guide_page.h"

#include <fstream>
#include <sstream>

namespace treadle {
namespace {

namespace fs = std::filesystem;

/// Every line without white space at its end, between line feeds.
std::string trimmed(const std::string& text) {
  std::string trimmed = "\n";
  for (const std::string& line : lines_of(text))
    trimmed += line.substr(0, line.find_last_not_of(" \t") + 1) + "\n";
  return trimmed;
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

std::vector<Fragment> fragments_of(const std::string& page) {
  std::vector<Fragment> fragments;
  bool inside = false;
  int number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) {
        Fragment& fragment = fragments.emplace_back();
        fragment.line = number;
        std::istringstream(line.substr(3)) >> fragment.language >> fragment.word;
      }
    } else if (inside) {
      fragments.back().text += line + "\n";
    }
  }
  return fragments;
}

std::vector<std::string> links_in(const std::string& page) {
  std::vector<std::string> links;
  bool inside = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```"))
      inside = !inside;
    for (std::size_t at = line.find("]("); !inside && at != std::string::npos;
         at = line.find("](", at + 1)) {
      const std::string target = line.substr(at + 2, line.find_first_of(")#", at) - at - 2);
      if (!target.empty() && target.find("://") == std::string::npos)
        links.push_back(target);
    }
  }
  return links;
}

std::vector<ShownCommand> commands_in(const std::string& fragment) {
  std::vector<ShownCommand> commands;
  for (const std::string& line : lines_of(fragment)) {
    if (line.starts_with("$ ")) {
      commands.push_back({line.substr(2), ""});
    } else if (!commands.empty()) {
      commands.back().output += line + "\n";
    }
  }
  return commands;
}

bool is_excerpt(const std::string& lines, const fs::path& folder) {
  const std::string wanted = trimmed(lines);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file())
      continue;
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    if (trimmed(text.str()).find(wanted) != std::string::npos)
      return true;
  }
  return false;
}

}  // namespace treadle
