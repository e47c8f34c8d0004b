#include "launch/launch_command.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/duration.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/host/launch/group_check.h>
#include <treadle/host/launch/supervisor.h>

#include "command_line/answer.h"
#include "command_line/program.h"
#include "launch/group_check_text.h"
#include "launch/launched_command.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMostProcesses = 4096;
constexpr std::int64_t kMostRestarts = 1'000'000;

std::int64_t count_of(const CommandLine& line, const std::string& option, std::int64_t least,
                      std::int64_t most) {
  const std::string text = line.text(option);
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stopped != end || count < least || count > most) {
    throw UsageError("--" + option + ": expected a whole number from " + std::to_string(least) +
                     " to " + std::to_string(most) + ", got " + quote_text(text));
  }
  return count;
}

milliseconds timeout_of(const CommandLine& line) {
  constexpr double kLeast = 0.1;
  constexpr double kMost = 7 * 24 * 3600;
  const std::string text = line.text("timeout");
  try {
    const Duration duration = Duration::parse(text);
    if (duration.unit == Duration::Unit::kSeconds && duration.value >= kLeast &&
        duration.value <= kMost)
      return milliseconds(static_cast<std::int64_t>(duration.value * 1000));
  } catch (const std::invalid_argument&) {
    // Reported as all others below.
  }
  throw UsageError("--timeout: expected a time from 0.1s to 7d such as 30s or 5min, got " +
                   quote_text(text));
}

std::vector<std::string> with_program(const std::filesystem::path& program,
                                      std::vector<std::string> words) {
  words.insert(words.begin(), program.string());
  return words;
}

void add_hosts(const CommandLine& line, launch::LaunchPlan& plan) {
  plan.hosts = count_of(line, "hosts", 1, kMostProcesses);
  if (plan.hosts > 1) {
    if (!line.has("host") || !line.has("at")) {
      throw UsageError(
          "--hosts needs --host NUMBER, from 0, and --at HOST:PORT of host 0, such as "
          "node-1:29500");
    }
    plan.host = count_of(line, "host", 0, plan.hosts - 1);
    plan.at = launch::Endpoint::parse(line.text("at"), "--at");
  } else if (line.has("host") || line.has("at")) {
    throw UsageError("--host and --at are about several hosts: add --hosts COUNT");
  }
}

launch::LaunchPlan plan_of(const CommandLine& line) {
  launch::LaunchPlan plan;
  add_hosts(line, plan);
  plan.processes = count_of(line, "processes", 1, kMostProcesses);
  plan.restarts = count_of(line, "restarts", 0, kMostRestarts);
  if (line.has("min-processes"))
    plan.least_processes = count_of(line, "min-processes", 1, plan.processes * plan.hosts);
  plan.timeout = timeout_of(line);
  return plan;
}

/// The communicator's bandwidth and latency belong here, once the hosts reach each other.
void check(const CommandLine& line, const launch::LaunchPlan& plan) {
  const launch::CheckEnd end = launch::check_group(plan);
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

}  // namespace

void launch(const CommandLine& line, const std::filesystem::path& program) {
  launch::LaunchPlan plan = plan_of(line);
  if (line.has("check"))
    return check(line, plan);
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
