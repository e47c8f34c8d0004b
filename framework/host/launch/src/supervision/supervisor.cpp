#include <treadle/host/launch/supervisor.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>
#include <treadle/base/system/processors.h>

#include "processes/group_watch.h"
#include "processes/rank_group.h"
#include "processes/signal_queue.h"
#include "supervision/following_host.h"
#include "supervision/generations.h"
#include "supervision/leading_host.h"

namespace treadle::launch {
namespace {

constexpr int kStopCode = static_cast<int>(ErrorKind::kInterrupted);

std::string report_of(const GroupOutcome& outcome) {
  return outcome.message +
         (outcome.last_lines.empty() ? "" : "\nits last lines:\n" + outcome.last_lines);
}

RankGroup::Plan group_plan(const LaunchPlan& plan, const message::Start& start) {
  RankGroup::Plan group;
  group.command = start.run.empty() || !plan.resuming ? plan.command : plan.resuming(start.run);
  group.first_rank = start.first_rank;
  group.processes = start.processes;
  group.world_size = start.world_size;
  group.job_id = start.job_id;
  group.generation = start.generation;
  group.token = start.token;
  group.address = start.address;
  group.workers = std::max<std::int64_t>(1, available_cores() / start.processes);
  group.timeout = plan.timeout;
  group.silence = 2 * plan.timeout;
  group.settling = plan.settling;
  group.grace = plan.grace;
  return group;
}

/// A system that starts too few processes has lost them.
GroupOutcome run_generation(RankGroup::Plan plan, GroupWatch& watch, OtherHosts* others) {
  const bool is_restart = plan.generation > 0;
  try {
    RankGroup group(std::move(plan));
    watch.watch(group, others);
    return group.outcome();
  } catch (const std::system_error& error) {
    // The first generation never ran: the caller reports the reason.
    if (!is_restart)
      throw;
    GroupOutcome outcome;
    outcome.code = static_cast<int>(ErrorKind::kCommunication);
    outcome.is_lost = true;
    outcome.message = error.what();
    return outcome;
  }
}

using HostOutcome = std::pair<std::int64_t, GroupOutcome>;

/// The one that decides: the first cause, else the first failure, else a stop.
HostOutcome deciding(const GroupOutcome& own, const LeadingHost* others) {
  std::vector<HostOutcome> all{{0, own}};
  if (others != nullptr)
    all.insert(all.end(), others->outcomes().begin(), others->outcomes().end());
  const auto weight = [](const HostOutcome& outcome) {
    const GroupOutcome& its = outcome.second;
    return its.message.empty() ? (its.code != 0 ? 1 : 0) : its.is_cause ? 3 : 2;
  };
  HostOutcome decision = *std::max_element(
      all.begin(), all.end(),
      [&](const HostOutcome& a, const HostOutcome& b) { return weight(a) < weight(b); });
  decision.second.run = own.run;
  return decision;
}

std::string restart_text(const Generations& generations, std::int64_t restarts,
                         std::int64_t processes) {
  return "restart " + std::to_string(generations.generation() + 1) + " of " +
         std::to_string(restarts) + ", with " + std::to_string(processes) +
         (processes == 1 ? " process" : " processes") +
         (generations.run().empty()
              ? ""
              : ", from the last checkpoint of " + shown_path(generations.run()));
}

std::map<std::int64_t, std::int64_t> processes_of(const LaunchPlan& plan,
                                                  const LeadingHost* others) {
  std::map<std::int64_t, std::int64_t> processes{{0, plan.processes}};
  if (others != nullptr) {
    for (const auto& [number, hello] : others->hosts())
      processes[number] = hello.processes;
  }
  return processes;
}

}  // namespace

Supervisor::Supervisor(LaunchPlan plan, std::function<void(const std::string&)> announce)
    : plan_(std::move(plan)), announce_(std::move(announce)) {
  TREADLE_EXPECTS(!plan_.command.empty() && plan_.processes >= 1, "a launch starts something");
  TREADLE_EXPECTS(plan_.host >= 0 && plan_.host < plan_.hosts, "this host is one of the group");
}

int Supervisor::run() {
  return plan_.host == 0 ? lead() : follow();
}

int Supervisor::lead() {
  SignalQueue signals;
  GroupWatch watch(signals);
  std::unique_ptr<LeadingHost> others;
  if (plan_.hosts > 1)
    others =
        std::make_unique<LeadingHost>(LeadingHost::Settings{plan_.at, plan_.hosts, plan_.timeout});
  Generations generations(plan_);
  int code = kStopCode;
  for (bool goes_on = true; goes_on;) {
    const std::string missing = others ? others->gather(watch) : "";
    generations.set_hosts(processes_of(plan_, others.get()));
    if (watch.is_stopping()) {
      code = kStopCode;
      break;
    }
    const bool are_enough = generations.generation() >= 0 && plan_.least_processes > 0 &&
                            generations.world_size() >= plan_.least_processes;
    if (!missing.empty() && !are_enough) {
      others->dismiss(static_cast<int>(ErrorKind::kCommunication));
      throw CommunicationError(missing_text(plan_, missing));
    }
    if (generations.generation() >= 0)
      announce_(restart_text(generations, plan_.restarts, generations.world_size()));
    const std::string address =
        others ? Endpoint{plan_.at.host, free_port()}.text() : std::string();
    std::map<std::int64_t, message::Start> starts = generations.begin(address);
    const message::Start own = starts.at(0);
    starts.erase(0);
    if (others)
      others->start(starts);
    const GroupOutcome outcome = run_generation(group_plan(plan_, own), watch, others.get());
    const auto [host, decision] = deciding(outcome, others.get());
    code = decision.code;
    if (!decision.message.empty() && !decision.is_explained)
      announce_(report_of(decision));
    goes_on = generations.end(host, decision) && !watch.is_stopping();
  }
  if (others)
    others->dismiss(code);
  return code;
}

int Supervisor::follow() {
  SignalQueue signals;
  GroupWatch watch(signals);
  FollowingHost leader(plan_.at,
                       {plan_.host, plan_.hosts, plan_.processes, HostFacts::of_this_host()},
                       plan_.timeout);
  while (true) {
    const FollowingHost::Order order = leader.await_order(watch);
    if (!order.start)
      return order.code;
    GroupOutcome outcome;
    try {
      outcome = run_generation(group_plan(plan_, *order.start), watch, &leader);
    } catch (const std::system_error& error) {
      outcome.code = static_cast<int>(ErrorKind::kStorage);
      outcome.message = error.what();
    }
    if (!outcome.message.empty())
      announce_(report_of(outcome));
    leader.report(outcome);
  }
}

}  // namespace treadle::launch
