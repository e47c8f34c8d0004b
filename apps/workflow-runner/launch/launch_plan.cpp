#include "launch/launch_plan.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <treadle/base/duration.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

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

}  // namespace

launch::LaunchPlan launch_plan(const CommandLine& line) {
  launch::LaunchPlan plan;
  add_hosts(line, plan);
  plan.processes = count_of(line, "processes", 1, kMostProcesses);
  plan.restarts = count_of(line, "restarts", 0, kMostRestarts);
  if (line.has("min-processes"))
    plan.least_processes = count_of(line, "min-processes", 1, plan.processes * plan.hosts);
  plan.timeout = timeout_of(line);
  return plan;
}

}  // namespace treadle::cli
