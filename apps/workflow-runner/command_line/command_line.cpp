#include "command_line/command_line.h"

#include <algorithm>
#include <utility>

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/text_wrap.h>

#include "command_line/key_suggestion.h"

#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

namespace po = boost::program_options;

constexpr Option kHelp{"help", 'h', "", false, "", "explains the command"};

std::string shown_name(const Argument& argument) {
  const std::string name(argument.name);
  const std::string shown = argument.repeats ? name + "…" : name;
  return argument.is_optional ? "[" + shown + "]" : shown;
}

std::vector<Option> all_options(const Command& command) {
  std::vector<Option> options = command.options;
  options.push_back(kHelp);
  return options;
}

const Option* find_option(const std::vector<Option>& options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

po::options_description description_of(const std::vector<Option>& options) {
  po::options_description description;
  for (const Option& option : options) {
    std::string name(option.name);
    if (option.letter != 0)
      name += std::string(",") + option.letter;
    if (option.value.empty()) {
      description.add_options()(name.c_str(), "");
    } else {
      description.add_options()(name.c_str(), po::value<std::string>(), "");
    }
  }
  return description;
}

std::string help_hint(const Command& command) {
  return "see \"workflow-runner " + std::string(command.name) + " --help\"";
}

std::string without_dashes(std::string_view option) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  return std::string(option.substr(0, option.find('=')));
}

[[noreturn]] void fail_unknown_option(const Command& command, const std::vector<Option>& options,
                                      const std::string& typed,
                                      std::span<const std::string> words) {
  std::vector<std::string> names;
  for (const Option& option : options)
    names.push_back("--" + std::string(option.name));
  std::string suggestion = did_you_mean("--" + without_dashes(typed), names);
  if (suggestion.empty() && find_option(options, "set") != nullptr)
    suggestion = key_suggestion(typed, words);
  throw UsageError(std::string(command.name) + " has no option " + quote_text(typed) +
                   (suggestion.empty() ? "; " + help_hint(command) : suggestion));
}

po::parsed_options parse_options(const Command& command, const std::vector<Option>& options,
                                 std::span<const std::string> words) {
  const po::options_description description = description_of(options);
  // Abbreviations would become ambiguous when options are added.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    return po::command_line_parser(std::vector<std::string>(words.begin(), words.end()))
        .options(description)
        .style(style)
        .run();
  } catch (const po::unknown_option& error) {
    fail_unknown_option(command, options, error.get_option_name(), words);
  } catch (const po::invalid_command_line_syntax& error) {
    const Option* option = find_option(options, without_dashes(error.get_option_name()));
    const std::string name = "--" + without_dashes(error.get_option_name());
    if (option != nullptr && !option->value.empty())
      throw UsageError(name + " needs a value: " + name + " " + std::string(option->value));
    throw UsageError(name + " takes no value; " + help_hint(command));
  } catch (const po::error& error) {
    throw UsageError(std::string(error.what()) + "; " + help_hint(command));
  }
}

void require_arguments(const Command& command, const CommandLine& line) {
  const std::vector<std::string>& given = line.arguments;
  const auto option_instead = [&]() -> std::string_view {
    if (command.arguments.empty())
      return {};
    const Argument& first = command.arguments.front();
    return line.has(first.instead)      ? first.instead
           : line.has(first.or_instead) ? first.or_instead
                                        : "";
  };
  if (const std::string_view option = option_instead(); !option.empty()) {
    if (given.empty())
      return;
    const Argument& replaced = command.arguments.front();
    throw UsageError("--" + std::string(option) + " takes the place of " +
                     std::string(replaced.name) + "; leave " + quote_text(given.front()) + " out");
  }
  if (given.empty() && !command.arguments.empty() &&
      line.has(command.arguments.front().optional_with))
    return;
  const bool may_have_more = !command.arguments.empty() && command.arguments.back().repeats;
  if (given.size() >= required_arguments(command) &&
      (may_have_more || given.size() <= command.arguments.size()))
    return;
  if (given.size() > command.arguments.size()) {
    throw UsageError(std::string(command.name) + " does not know what to do with " +
                     quote_text(given[command.arguments.size()]) +
                     "; usage: " + usage_line(command));
  }
  std::string missing;
  std::size_t seen = 0;
  for (const Argument& argument : command.arguments) {
    if (!argument.is_optional && seen++ >= given.size())
      missing += (missing.empty() ? "" : " and ") + std::string(argument.name);
  }
  throw UsageError(std::string(command.name) + " expects " + missing +
                   "; usage: " + usage_line(command));
}

void require_options(const Command& command, const CommandLine& line) {
  for (const Option& option : command.options) {
    if (option.is_required && !line.has(option.name)) {
      throw UsageError(std::string(command.name) + " needs --" + std::string(option.name) + " " +
                       std::string(option.value) + ": " + std::string(option.about));
    }
  }
}

/// How many of the words are options of the command, with their values, before its first argument.
std::size_t leading_options(const std::vector<Option>& options,
                            std::span<const std::string> words) {
  std::size_t count = 0;
  while (count < words.size() && words[count].size() > 1 && words[count].front() == '-' &&
         words[count] != "--") {
    const std::string& word = words[count++];
    const bool is_long = word[1] == '-';
    const auto option = std::find_if(options.begin(), options.end(), [&](const Option& one) {
      return is_long ? word.substr(2) == one.name : word.size() == 2 && word[1] == one.letter;
    });
    if (option != options.end() && !option->value.empty() && count < words.size())
      ++count;
  }
  return count;
}

CommandLine parse_command(const Command& command, std::span<const std::string> words) {
  const std::vector<Option> options = all_options(command);
  CommandLine line;
  line.command = &command;
  std::span<const std::string> others;
  if (command.has_command_as_argument) {
    const std::size_t count = leading_options(options, words);
    others = words.subspan(count);
    words = words.first(count);
    if (!others.empty() && others.front() == "--")
      others = others.subspan(1);
  }
  for (const auto& parsed : parse_options(command, options, words).options) {
    if (parsed.string_key.empty()) {
      line.arguments.insert(line.arguments.end(), parsed.value.begin(), parsed.value.end());
      continue;
    }
    std::vector<std::string>& values = line.values[parsed.string_key];
    const Option* option = find_option(options, parsed.string_key);
    if (!values.empty() && option != nullptr && !option->repeats)
      throw UsageError("--" + parsed.string_key + " was given twice");
    values.insert(values.end(), parsed.value.begin(), parsed.value.end());
  }
  line.arguments.insert(line.arguments.end(), others.begin(), others.end());
  line.help = line.has("help");
  if (!line.help) {
    require_arguments(command, line);
    require_options(command, line);
  }
  return line;
}

std::string choice_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? " or " : ", ";
    text += quote_text(words[i]);
  }
  return text;
}

[[noreturn]] void fail_unknown_command(const std::string& typed) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.emplace_back(command.name);
    names.emplace_back(command.name.substr(0, command.name.find(' ')));
  }
  const std::string suggestion = did_you_mean(typed, names);
  throw UsageError("there is no command " + quote_text(typed) +
                   (suggestion.empty() ? "; see \"workflow-runner --help\"" : suggestion));
}

[[noreturn]] void fail_unknown_second_word(const std::string& first, const std::string& typed,
                                           const std::vector<std::string>& seconds) {
  const std::string suggestion = find_command(typed) == nullptr
                                     ? did_you_mean(typed, seconds)
                                     : "; " + quote_text(typed) + " is a command of its own";
  throw UsageError(quote_text(first) + " is followed by " + choice_of(seconds) + ", not " +
                   quote_text(typed) + suggestion);
}

bool asks_for_help(const std::string& word) {
  return word == "--help" || word == "-h";
}

/// Two columns: what can be typed, and what it means.
std::string help_block(std::string_view title,
                       const std::vector<std::pair<std::string, std::string>>& lines,
                       std::size_t columns) {
  std::size_t width = 0;
  for (const auto& [left, unused] : lines)
    width = std::max(width, columns_of(left));
  std::string text = "\n" + std::string(title) + ":\n";
  for (const auto& [left, about] : lines)
    text += hanging_text("  " + left, width + 4, about, columns);
  return text;
}

std::string command_help(const Command& command, std::size_t columns) {
  std::string text = usage_line(command) + "\n\n" + hanging_text("", 0, command.about, columns);
  if (!command.arguments.empty()) {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const Argument& argument : command.arguments)
      lines.emplace_back(argument.name, argument.about);
    text += help_block("Arguments", lines, columns);
  }
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Option& option : all_options(command)) {
    std::string left = option.letter != 0 ? std::string("-") + option.letter + ", " : "    ";
    left += "--" + std::string(option.name);
    if (!option.value.empty())
      left += " " + std::string(option.value);
    std::string about(option.about);
    if (!option.fallback.empty())
      about += " (default: " + std::string(option.fallback) + ")";
    lines.emplace_back(std::move(left), std::move(about));
  }
  return text + help_block("Options", lines, columns) + "\nExample:\n  workflow-runner " +
         std::string(command.example) + "\n";
}

/// The commands whose first word is `group`; all for an empty one.
std::vector<const Command*> commands_of(std::string_view group) {
  std::vector<const Command*> members;
  for (const Command& command : commands()) {
    if (group.empty() || command.name.substr(0, command.name.find(' ')) == group)
      members.push_back(&command);
  }
  return members;
}

std::string commands_block(const std::vector<const Command*>& members, std::size_t columns) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Command* command : members) {
    std::string left(command->name);
    for (const Argument& argument : command->arguments)
      left += " " + shown_name(argument);
    lines.emplace_back(std::move(left), command->about);
  }
  return help_block("Commands", lines, columns);
}

/// What is said of "plugins" and "runs", which are no commands themselves.
std::string group_help(std::string_view group, std::size_t columns) {
  const std::vector<const Command*> members = commands_of(group);
  return "workflow-runner " + std::string(group) + " COMMAND [ARGUMENT…] [OPTION…]\n" +
         commands_block(members, columns) +
         help_block("Options", {{"-h, --help", "explains; also after a command"}}, columns) +
         "\nExample:\n  workflow-runner " + std::string(members.front()->example) + "\n";
}

std::string overview(std::size_t columns) {
  return "workflow-runner COMMAND [ARGUMENT…] [OPTION…]\n\n"
         "Trains, validates and uses models described by JSON documents.\n" +
         commands_block(commands_of(""), columns) +
         help_block("Options",
                    {{"-h, --help", "explains; also after a command"},
                     {"    --version", "prints the version"}},
                    columns) +
         "\nExample:\n  workflow-runner run examples/iris.json\n\n" +
         hanging_text(
             "", 0,
             "Exit codes: 0 done, 1 internal, 2 command line, 3 document, 4 plugin, 5 data, "
             "6 training, 7 storage, 8 communication, 130 interrupted.",
             std::min<std::size_t>(columns, 80));
}

}  // namespace

std::string CommandLine::text(std::string_view option) const {
  const auto given = values.find(option);
  if (given != values.end() && !given->second.empty())
    return given->second.back();
  const Option* known = command == nullptr ? nullptr : find_option(command->options, option);
  return known == nullptr ? std::string() : std::string(known->fallback);
}

std::vector<std::string> CommandLine::overrides() const {
  std::vector<std::string> replaced = texts("set");
  if (has("device"))
    replaced.push_back("resources.device=" + text("device"));
  return replaced;
}

std::vector<std::string> CommandLine::texts(std::string_view option) const {
  const auto given = values.find(option);
  return given == values.end() ? std::vector<std::string>() : given->second;
}

std::string CommandLine::output_file(std::string_view option) const {
  const std::string file = text(option);
  if (file != "-" && !is_standard_output(file))
    return file;
  if (has("json")) {
    throw UsageError("--" + std::string(option) + " " + file +
                     " and --json both print to the standard output; leave one out, or name a "
                     "file");
  }
  return std::string(kStandardOutput);
}

PluginSettings CommandLine::plugin_settings() const {
  const std::vector<std::string> folders = texts("plugin-dir");
  const std::vector<std::string> files = texts("plugin");
  PluginSettings settings;
  settings.plugin_dirs.assign(folders.begin(), folders.end());
  settings.plugins.assign(files.begin(), files.end());
  settings.allow_writable = has("allow-writable-plugins");
  settings.probing = text("probe");
  settings.lock_file = text("locked");
  return settings;
}

bool CommandLine::needs_tensors() const {
  return command != nullptr &&
         (command->needs_tensors ||
          std::any_of(command->tensor_options.begin(), command->tensor_options.end(),
                      [this](std::string_view option) { return has(option); }));
}

std::string usage_line(const Command& command) {
  std::string text = "workflow-runner " + std::string(command.name);
  if (command.has_command_as_argument)
    return text + " [OPTION…] " + shown_name(command.arguments.front());
  for (const Argument& argument : command.arguments)
    text += " " + shown_name(argument);
  return text + " [OPTION…]";
}

CommandLine parse_command_line(std::span<const std::string> words) {
  CommandLine line;
  if (words.empty())
    throw UsageError("expects a command; see \"workflow-runner --help\"");
  const std::string& first = words.front();
  if (asks_for_help(first) || first == "--version") {
    line.help = first != "--version";
    line.version = !line.help;
    return line;
  }
  if (first.starts_with("-"))
    throw UsageError("options follow the command: \"workflow-runner COMMAND " + first + "\"");
  if (const Command* command = find_command(first))
    return parse_command(*command, words.subspan(1));

  const std::vector<std::string> seconds = second_words(first);
  if (seconds.empty())
    fail_unknown_command(first);
  if (words.size() > 1 && asks_for_help(words[1])) {
    line.help = true;
    line.group = first;
    return line;
  }
  if (words.size() == 1)
    throw UsageError(quote_text(first) + " is followed by " + choice_of(seconds));
  const Command* command = find_command(first + " " + words[1]);
  if (command == nullptr)
    fail_unknown_second_word(first, words[1], seconds);
  return parse_command(*command, words.subspan(2));
}

std::string help_text(const CommandLine& line, std::size_t columns) {
  if (line.command != nullptr)
    return command_help(*line.command, columns);
  return line.group.empty() ? overview(columns) : group_help(line.group, columns);
}

}  // namespace treadle::cli
