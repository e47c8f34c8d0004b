#include <treadle/host/launch/supervisor.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>
#include <treadle/base/processors.h>

#include "group_watch.h"
#include "random_text.h"
#include "rank_group.h"
#include "signal_queue.h"

namespace treadle::launch {
namespace {

constexpr std::size_t kIdBytes = 8;
constexpr std::size_t kTokenBytes = 16;
/// A generation that loses a process so soon has lost it "at once".
constexpr std::chrono::seconds kAtOnce{10};

using Clock = std::chrono::steady_clock;

GroupOutcome run_generation(const RankGroup::Plan& plan, GroupWatch& watch) {
  try {
    RankGroup group(plan);
    watch.watch(group, nullptr);
    return group.outcome();
  } catch (const std::system_error& error) {
    // The first generation never ran: the caller reports the reason.
    if (plan.generation == 0)
      throw;
    GroupOutcome outcome;
    outcome.code = static_cast<int>(ErrorKind::kCommunication);
    outcome.is_lost = true;
    outcome.message = error.what();
    return outcome;
  }
}

std::string report_of(const GroupOutcome& outcome) {
  return outcome.message +
         (outcome.last_lines.empty() ? "" : "\nits last lines:\n" + outcome.last_lines);
}

}  // namespace

Supervisor::Supervisor(LaunchPlan plan, std::function<void(const std::string&)> announce)
    : plan_(std::move(plan)), announce_(std::move(announce)) {
  TREADLE_EXPECTS(!plan_.command.empty() && plan_.processes >= 1, "a launch starts something");
}

int Supervisor::run() {
  SignalQueue signals;
  GroupWatch watch(signals);
  RankGroup::Plan next;
  next.command = plan_.command;
  next.processes = plan_.processes;
  next.job_id = random_text(kIdBytes);
  next.timeout = plan_.timeout;
  next.silence = 2 * plan_.timeout;
  while (true) {
    next.world_size = next.processes;
    next.token = random_text(kTokenBytes);
    next.workers = std::max<std::int64_t>(1, available_cores() / next.processes);
    const auto begin = Clock::now();
    const GroupOutcome outcome = run_generation(next, watch);
    if (!outcome.message.empty())
      announce_(report_of(outcome));
    if (watch.is_stopping() || !outcome.is_lost || next.generation >= plan_.restarts)
      return outcome.code;
    // The first loss may be an accident; one at once after a restart is a host that has not enough
    // for all.
    if (next.generation > 0 && Clock::now() - begin < kAtOnce && plan_.least_processes > 0 &&
        next.processes > plan_.least_processes)
      --next.processes;
    if (!outcome.run.empty() && plan_.resuming)
      next.command = plan_.resuming(outcome.run);
    ++next.generation;
    announce_(
        "restart " + std::to_string(next.generation) + " of " + std::to_string(plan_.restarts) +
        ", with " + std::to_string(next.processes) +
        (next.processes == 1 ? " process" : " processes") +
        (outcome.run.empty() ? "" : ", from the last checkpoint of " + shown_path(outcome.run)));
  }
}

}  // namespace treadle::launch
