#include "supervision/generation_run.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/system/processors.h>

namespace treadle::launch {
namespace {

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

}  // namespace

std::string report_of(const GroupOutcome& outcome) {
  return outcome.message +
         (outcome.last_lines.empty() ? "" : "\nits last lines:\n" + outcome.last_lines);
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

HostOutcome lead_generation(const LaunchPlan& plan, Generations& generations, GroupWatch& watch,
                            LeadingHost* others) {
  const std::string address =
      others != nullptr ? Endpoint{plan.at.host, free_port()}.text() : std::string();
  std::map<std::int64_t, message::Start> starts = generations.begin(address);
  const message::Start own = starts.at(0);
  starts.erase(0);
  if (others != nullptr)
    others->start(starts);
  return deciding(run_generation(group_plan(plan, own), watch, others), others);
}

int follow_orders(const LaunchPlan& plan, FollowingHost& leader, GroupWatch& watch,
                  const std::function<void(const std::string&)>& announce) {
  while (true) {
    const FollowingHost::Order order = leader.await_order(watch);
    if (!order.targets.empty()) {
      leader.report(message::reach(order.targets, plan.host));
      continue;
    }
    if (!order.start)
      return order.code;
    GroupOutcome outcome;
    try {
      outcome = run_generation(group_plan(plan, *order.start), watch, &leader);
    } catch (const std::system_error& error) {
      outcome.code = static_cast<int>(ErrorKind::kStorage);
      outcome.message = error.what();
    }
    if (!outcome.message.empty())
      announce(report_of(outcome));
    leader.report(outcome);
  }
}

}  // namespace treadle::launch
