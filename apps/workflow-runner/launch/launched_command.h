#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "command_line/command_line.h"

namespace treadle::cli {

/// The command that every process of a launch executes.
class LaunchedCommand {
 public:
  /// Of the words behind the options of `launch`: "run my.json -o runs", or "my.json" for short.
  /// Throws UsageError for commands that train nothing, and as parse_command_line() does.
  explicit LaunchedCommand(std::vector<std::string> words);

  const CommandLine& line() const { return line_; }
  /// Puts documents that come through a pipe into memory, where every process can read them. Once.
  void keep_piped_documents();
  /// The words behind `workflow-runner`.
  const std::vector<std::string>& words() const { return words_; }
  /// Those that go on with `run`: "resume RUN", with the options that both commands have.
  std::vector<std::string> words_to_resume(const std::filesystem::path& run) const;

 private:
  std::vector<std::string> words_;
  CommandLine line_;
};

}  // namespace treadle::cli
