#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/host/catalog/plugin_settings.h>

#include "command_line/commands.h"

namespace treadle::cli {

/// What somebody typed, understood.
struct CommandLine {
  const Command* command = nullptr;  ///< null: only help() or the version is wanted
  std::string group;                 ///< "plugins", when help on all of its commands is wanted
  bool help = false;
  bool version = false;
  std::vector<std::string> arguments;  ///< of optional ones the first may be absent

  bool has(std::string_view option) const { return values.find(option) != values.end(); }
  /// The option's value, its fallback, or nothing.
  std::string text(std::string_view option) const;
  std::vector<std::string> texts(std::string_view option) const;
  /// The file that the option names; kStandardOutput for "-". Throws UsageError where --json would
  /// print there, too.
  std::string output_file(std::string_view option) const;
  PluginSettings plugin_settings() const;
  /// The document's values that --set and --device replace.
  std::vector<std::string> overrides() const;
  /// Whether treadle-run executes it.
  bool needs_tensors() const;

  std::map<std::string, std::vector<std::string>, std::less<>> values;
};

/// What "-" means where a file is written.
inline constexpr std::string_view kStandardOutput = "/dev/stdout";
inline bool is_standard_output(std::string_view file) {
  return file == kStandardOutput;
}

/// Understands the words after the program's name. Throws UsageError with near misses for a command
/// or an option that does not exist, and a usage line where something is missing.
CommandLine parse_command_line(std::span<const std::string> words);

/// "workflow-runner run DOCUMENT [OPTION…]"
std::string usage_line(const Command& command);

/// What --help prints, for the command, its group, or for everything: in a window of `columns`.
std::string help_text(const CommandLine& line, std::size_t columns = static_cast<std::size_t>(-1));

}  // namespace treadle::cli
