#include "command_line/command_line.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CommandLine parse(std::vector<std::string> words) {
  return parse_command_line(words);
}

std::string complaint(std::vector<std::string> words) {
  try {
    parse(std::move(words));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(CommandLine, UnderstandsArgumentsAndOptionsInAnyOrder) {
  const CommandLine line =
      parse({"run", "--set", "seed=1", "my.json", "--set=name=x", "-o", "out", "--quiet"});

  EXPECT_EQ(line.command->name, "run");
  EXPECT_THAT(line.arguments, ElementsAre("my.json"));
  EXPECT_THAT(line.texts("set"), ElementsAre("seed=1", "name=x"));
  EXPECT_EQ(line.text("output"), "out");
  EXPECT_TRUE(line.has("quiet"));
  EXPECT_FALSE(line.has("json"));
}

TEST(CommandLine, FallsBackToTheDefault) {
  EXPECT_EQ(parse({"run", "my.json"}).text("output"), "runs");
}

TEST(CommandLine, UnderstandsCommandsOfTwoWords) {
  const CommandLine line = parse({"plugins", "describe", "optimizer", "adamw"});

  EXPECT_EQ(line.command->name, "plugins describe");
  EXPECT_THAT(line.arguments, ElementsAre("optimizer", "adamw"));
}

TEST(CommandLine, TakesEverythingAfterTwoDashesForArguments) {
  EXPECT_THAT(parse({"check", "--", "--odd.json"}).arguments, ElementsAre("--odd.json"));
}

TEST(CommandLine, LeavesTheOptionsOfALaunchedCommandToThatCommand) {
  const CommandLine line =
      parse({"launch", "-n", "4", "--restarts=1", "run", "my.json", "-o", "out", "--bogus", "--"});

  EXPECT_EQ(line.text("processes"), "4");
  EXPECT_EQ(line.text("restarts"), "1");
  EXPECT_THAT(line.arguments, ElementsAre("run", "my.json", "-o", "out", "--bogus", "--"));
  EXPECT_THAT(parse({"launch", "-n4", "--", "run", "--help"}).arguments,
              ElementsAre("run", "--help"));
  EXPECT_FALSE(parse({"launch", "-n4", "run", "--help"}).help);
  EXPECT_TRUE(parse({"launch", "-n", "4", "--help", "run"}).help);
}

TEST(CommandLine, SendsOnlyADryRunOfCheckToTheProgramWithTensors) {
  EXPECT_FALSE(parse({"check", "my.json"}).needs_tensors());
  EXPECT_TRUE(parse({"check", "my.json", "--dry-run"}).needs_tensors());
  EXPECT_TRUE(parse({"run", "my.json"}).needs_tensors());
  EXPECT_FALSE(parse({"schema"}).needs_tensors());
}

/// "\"a\", \"b\" or \"c\""
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + ("\"" + words[i] + "\"");
  return text;
}

TEST(CommandLine, ComplainsInOneSentence) {
  const struct {
    std::vector<std::string> words;
    std::string sentence;
  } kCases[] = {
      {{}, "expects a command; see \"workflow-runner --help\""},
      {{"rnu", "my.json"}, "there is no command \"rnu\"; did you mean \"run\"?"},
      {{"fly"}, "there is no command \"fly\"; see \"workflow-runner --help\""},
      {{"plugin", "list"}, "there is no command \"plugin\"; did you mean \"plugins\"?"},
      {{"plugins"}, "\"plugins\" is followed by " + listed(second_words("plugins"))},
      {{"plugins", "lits"},
       "\"plugins\" is followed by " + listed(second_words("plugins")) +
           ", not \"lits\"; did you mean \"list\"?"},
      {{"runs", "compare", "runs/a"},
       "\"runs\" is followed by \"list\", \"export\" or \"bundle\", not \"compare\"; \"compare\" "
       "is a command "
       "of its own"},
      {{"--json", "run"}, "options follow the command: \"workflow-runner COMMAND --json\""},
      {{"run"}, "run expects DOCUMENT; usage: workflow-runner run DOCUMENT [OPTION…]"},
      {{"evaluate"}, "evaluate expects RUN; usage: workflow-runner evaluate RUN [DATA] [OPTION…]"},
      {{"run", "a.json", "b.json"},
       "run does not know what to do with \"b.json\"; usage: workflow-runner run DOCUMENT "
       "[OPTION…]"},
      {{"run", "a.json", "--from", "runs/a"},
       "--from takes the place of DOCUMENT; leave \"a.json\" out"},
      {{"run", "a.json", "--ouptut", "x"},
       "run has no option \"--ouptut\"; did you mean \"--output\"?"},
      {{"run", "a.json", "--out", "x"}, "run has no option \"--out\"; did you mean \"--output\"?"},
      {{"run", "a.json", "--far-out", "x"},
       "run has no option \"--far-out\"; see \"workflow-runner run --help\""},
      {{"run", "a.json", "-z"}, "run has no option \"-z\"; see \"workflow-runner run --help\""},
      {{"check", "a.json", "--dry_run"},
       "check has no option \"--dry_run\"; did you mean \"--dry-run\"?"},
      {{"run", "a.json", "--output"}, "--output needs a value: --output DIR"},
      {{"run", "a.json", "--quiet=yes"},
       "--quiet takes no value; see \"workflow-runner run --help\""},
      {{"run", "a.json", "-o", "x", "--output", "y"}, "--output was given twice"},
      {{"launch", "my.json"},
       "launch needs --processes COUNT: how many processes to start on this host"},
      {{"launch", "-n", "4"},
       "launch expects COMMAND; usage: workflow-runner launch [OPTION…] COMMAND…"},
      {{"launch", "--restrats", "4", "my.json"},
       "launch has no option \"--restrats\"; did you mean \"--restarts\"?"},
      {{"predict", "runs/x", "new.csv"},
       "predict needs --output OUT: the file to write: CSV, or by its "
       "ending .jsonl, .parquet …"},
  };
  for (const auto& [words, sentence] : kCases)
    EXPECT_EQ(complaint(words), sentence);
}

TEST(CommandLine, ExplainsInsteadOfComplainingWhenAskedTo) {
  EXPECT_TRUE(parse({"evaluate", "--help"}).help);
  EXPECT_TRUE(parse({"-h"}).help);
  EXPECT_TRUE(parse({"--version"}).version);
  EXPECT_EQ(parse({"plugins", "--help"}).group, "plugins");
}

TEST(CommandLine, HelpNamesEveryCommand) {
  const std::string text = help_text(parse({"--help"}));

  for (const Command& command : commands())
    EXPECT_THAT(text, HasSubstr("\n  " + std::string(command.name))) << command.name;
}

TEST(CommandLine, HelpOnACommandNamesItsPartsAndGivesAnExampleThatParses) {
  for (const Command& command : commands()) {
    std::string name(command.name);
    std::vector<std::string> words;
    for (std::size_t space = name.find(' '); space != std::string::npos; space = name.find(' ')) {
      words.push_back(name.substr(0, space));
      name.erase(0, space + 1);
    }
    words.push_back(name);
    words.emplace_back("--help");
    const std::string text = help_text(parse(words));

    for (const Option& option : command.options)
      EXPECT_THAT(text, HasSubstr("--" + std::string(option.name)));
    for (const Argument& argument : command.arguments)
      EXPECT_THAT(text, HasSubstr("  " + std::string(argument.name) + " "));
    EXPECT_THAT(text, HasSubstr("workflow-runner " + std::string(command.example)));

    std::vector<std::string> example;
    std::string left(command.example.substr(0, command.example.find_first_of("|>")));
    while (!left.empty()) {
      const std::size_t space = std::min(left.find(' '), left.size());
      if (space > 0)
        example.push_back(left.substr(0, space));
      left.erase(0, space + 1);
    }
    EXPECT_EQ(parse(example).command, &command);
  }
}

TEST(CommandLine, HelpOnAGroupIsAboutTheGroup) {
  for (const std::string group : {"data", "runs", "plugins"}) {
    const std::string text = help_text(parse({group, "--help"}));
    EXPECT_THAT(text, testing::StartsWith("workflow-runner " + group + " COMMAND "));
    for (const Command& command : commands()) {
      const bool is_member = command.name.starts_with(group + " ");
      const std::string line = "\n  " + std::string(command.name) + " ";
      EXPECT_EQ(text.find(line) != std::string::npos, is_member) << command.name;
    }
    EXPECT_THAT(text, HasSubstr("\nExample:\n  workflow-runner " + group + " "));
    EXPECT_THAT(text, testing::Not(HasSubstr("--version")));
  }
}

/// A program prints, checks and explains; it does not say or want.
TEST(CommandLine, HelpDoesNotMakeAPersonOfTheProgram) {
  std::vector<std::string> texts{help_text(parse({"--help"}))};
  for (const Command& command : commands()) {
    CommandLine line;
    line.command = &command;
    texts.push_back(help_text(line));
  }
  for (const std::string& text : texts) {
    for (const char* phrase : {"Says ", " says ", "Judges ", "goes on ", "tried out ", "to learn ",
                               "come to", "came to", "given away"})
      EXPECT_THAT(text, testing::Not(HasSubstr(phrase)));
  }
}

TEST(CommandLine, HelpFitsAScreen) {
  for (const Command& command : commands()) {
    CommandLine line;
    line.command = &command;
    std::string text = help_text(line);
    while (!text.empty()) {
      const std::string row = text.substr(0, text.find('\n'));
      EXPECT_LE(row.size(), 100U) << row;
      text.erase(0, row.size() + 1);
    }
  }
}

TEST(CommandLine, HelpFitsANarrowWindow) {
  for (const Command& command : commands()) {
    CommandLine line;
    line.command = &command;
    std::string text = help_text(line, 70);
    text.erase(text.find("\nExample:"));  // to be copied
    while (!text.empty()) {
      const std::string row = text.substr(0, text.find('\n'));
      EXPECT_LE(columns_of(row), 70U) << row;
      text.erase(0, row.size() + 1);
    }
  }
}

TEST(CommandLine, OptionsOfOneCommandAreDistinct) {
  for (const Command& command : commands()) {
    std::set<std::string_view> names{"help"};
    std::set<char> letters{'h'};
    for (const Option& option : command.options) {
      EXPECT_TRUE(names.insert(option.name).second) << command.name << " " << option.name;
      EXPECT_TRUE(option.letter == 0 || letters.insert(option.letter).second) << command.name;
    }
  }
}

}  // namespace
}  // namespace treadle::cli
