#include "launch/launch_check.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/host/launch/group_check.h>

#include "command_line/answer.h"
#include "command_line/program.h"
#include "launch/captured_output.h"
#include "launch/group_check_text.h"
#include "launch/launch_plan.h"
#include "launch/launched_command.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

/// Rank 0 executes them as well, and prints a GroupReport.
std::vector<std::string> words_of_ranks(const CommandLine& line,
                                        const std::filesystem::path& program) {
  std::vector<std::string> words{program.string(), "launch", "--check",
                                 "--processes=" + line.text("processes")};
  if (line.has("json"))
    words.emplace_back("--json");
  words.emplace_back("--");
  if (line.arguments.empty())
    return words;
  LaunchedCommand command(line.arguments);
  command.keep_piped_documents();
  words.insert(words.end(), command.words().begin(), command.words().end());
  return words;
}

}  // namespace

void check_launch(const CommandLine& line, const std::filesystem::path& rank_program) {
  launch::LaunchPlan plan = launch_plan(line);
  plan.command = words_of_ranks(line, rank_program);
  const Terminal people(STDERR_FILENO);
  CapturedOutput output;
  launch::CheckEnd end = launch::check_group(std::move(plan), [&](const std::string& text) {
    people.write("workflow-runner launch: " + text + (text.ends_with('\n') ? "" : "\n"));
  });
  const std::string written = output.finish();
  constexpr int kStopped = static_cast<int>(ErrorKind::kInterrupted);
  if (end.code == kStopped)
    throw Interrupted("stopped before the check was finished");
  const nlohmann::json reported = parse_json(written);
  if (end.check && reported.is_object() && reported.contains("ranks")) {
    end.check->add(launch::GroupReport::from(reported));
  } else if (line.has("json") && reported.is_object()) {
    print(reported);  // the error of rank 0
    throw AlreadyTold{static_cast<ErrorKind>(end.code)};
  }
  if (!end.check) {
    print(line.has("json") ? nlohmann::json{{"checked_by", "host 0"}}.dump(2) + "\n"
                           : std::string("checked: host 0 prints the result\n"));
  } else if (line.has("json")) {
    print(group_check_json(*end.check));
  } else {
    print(group_check_text(*end.check, Terminal(STDOUT_FILENO)));
  }
  if (end.code != 0)
    throw AlreadyTold{static_cast<ErrorKind>(end.code)};
}

}  // namespace treadle::cli
