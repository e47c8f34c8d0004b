#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What can be typed after `workflow-runner`: one table, from which the parsing, the help and the
/// near misses are made. Both programs have it; each executes its own part.
namespace treadle::cli {

struct Argument {
  std::string_view name;  ///< "DOCUMENT", as usage lines show it
  std::string_view about;
  bool is_optional = false;
  bool repeats = false;                 ///< one or more; only the last argument of a command
  std::string_view instead = {};        ///< the option that takes the place of all arguments
  std::string_view or_instead = {};     ///< another one
  std::string_view optional_with = {};  ///< the option with which it may be left out
};

struct Option {
  std::string_view name;   ///< without dashes
  char letter = 0;         ///< 0: only the long form
  std::string_view value;  ///< what the usage calls its value, "" for a switch
  bool repeats = false;
  std::string_view fallback;  ///< the value when it is not given
  std::string_view about;
  bool is_required = false;
};

struct Command {
  std::string_view name;  ///< one word or two: "run", "plugins list"
  std::string_view about;
  std::vector<Argument> arguments;
  std::vector<Option> options;  ///< beside --help, which every command has
  std::string_view example;     ///< a line to copy, without the program's name
  /// Executed by treadle-run, which has libtorch: always, or when one of these options is given.
  bool needs_tensors = false;
  std::vector<std::string_view> tensor_options = {};
  /// The first argument ends the options: the words from there on are another command.
  bool has_command_as_argument = false;
};

std::span<const Command> commands();

/// The command of this name, or null.
const Command* find_command(std::string_view name);

/// How many of its arguments the command cannot do without.
std::size_t required_arguments(const Command& command);

/// The second words that may follow `first`: {"list", "describe"} for "plugins"; empty for others.
std::vector<std::string> second_words(std::string_view first);

}  // namespace treadle::cli
