#include "launch/launched_command.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "terminal/piped_document.h"

namespace treadle::cli {
namespace {

/// The commands that processes can execute together.
constexpr std::array<std::string_view, 3> kTrainings{"run", "tune", "resume"};

std::vector<std::string> with_command(std::vector<std::string> words) {
  TREADLE_EXPECTS(!words.empty(), "a launch has a command");
  if (std::find(kTrainings.begin(), kTrainings.end(), words.front()) != kTrainings.end())
    return words;
  if (find_command(words.front()) != nullptr || !second_words(words.front()).empty()) {
    throw UsageError("launch starts run, tune or resume, not " + quote_text(words.front()) +
                     "; for a document of this name: launch … run ./" + words.front());
  }
  words.insert(words.begin(), "run");
  return words;
}

}  // namespace

LaunchedCommand::LaunchedCommand(std::vector<std::string> words)
    : words_(with_command(std::move(words))), line_(parse_command_line(words_)) {}

void LaunchedCommand::keep_piped_documents() {
  for (std::size_t i = 0; i < std::min(line_.arguments.size(), line_.command->arguments.size());
       ++i) {
    const auto word = std::find(words_.begin() + 1, words_.end(), line_.arguments[i]);
    if (line_.command->arguments[i].name != "DOCUMENT" || word == words_.end())
      continue;
    char* path = word->data();
    keep_piped_document(path);
    if (path != word->data())
      *word = path;
  }
}

std::vector<std::string> LaunchedCommand::words_to_resume(const std::filesystem::path& run) const {
  const Command& resume = *find_command("resume");
  std::vector<std::string> words{std::string(resume.name)};
  for (const Option& option : resume.options) {
    for (const std::string& value : line_.texts(option.name)) {
      const std::string name = "--" + std::string(option.name);
      words.push_back(option.value.empty() ? name : name + "=" + value);
    }
    if (option.value.empty() && line_.has(option.name) && line_.texts(option.name).empty())
      words.push_back("--" + std::string(option.name));
  }
  words.emplace_back("--");
  words.push_back(run.string());
  return words;
}

}  // namespace treadle::cli
