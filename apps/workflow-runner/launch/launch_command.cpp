#include "launch/launch_command.h"

#include <signal.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/host/launch/supervisor.h>

#include "command_line/program.h"
#include "launch/launch_plan.h"
#include "launch/launched_command.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

std::vector<std::string> with_program(const std::filesystem::path& program,
                                      std::vector<std::string> words) {
  words.insert(words.begin(), program.string());
  return words;
}

}  // namespace

void launch(const CommandLine& line, const std::filesystem::path& program) {
  launch::LaunchPlan plan = launch_plan(line);
  if (line.has("json"))
    throw UsageError(
        "--json is about --check; for the command, give it behind: launch … run … --json");
  LaunchedCommand command(line.arguments);
  if (command.line().help) {
    const Terminal out(STDOUT_FILENO);
    return out.answer(help_text(command.line(), out.width()));
  }
  command.keep_piped_documents();
  plan.command = with_program(program, command.words());
  plan.resuming = [&](const std::filesystem::path& run) {
    return with_program(program, command.words_to_resume(run));
  };
  // The group goes on when nobody reads its messages any more.
  signal(SIGPIPE, SIG_IGN);
  const Terminal people(STDERR_FILENO);
  launch::Supervisor supervisor(std::move(plan), [&](const std::string& text) {
    people.write("workflow-runner launch: " + text + (text.ends_with('\n') ? "" : "\n"));
  });
  if (const int code = supervisor.run(); code != 0)
    throw AlreadyTold{static_cast<ErrorKind>(code)};
}

}  // namespace treadle::cli
