#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <treadle/host/launch/supervisor.h>

#include "processes/group_watch.h"
#include "supervision/following_host.h"
#include "supervision/generations.h"
#include "supervision/leading_host.h"

/// One generation of a group, from the start of its processes to the end of the last one: for
/// trainings and for `launch --check`.
namespace treadle::launch {

/// How a generation ended, and on which host that was decided.
using HostOutcome = std::pair<std::int64_t, GroupOutcome>;

/// As host 0 runs it: on all hosts. `others`: null where there is one. Throws std::system_error
/// where nothing can be started in generation 0.
HostOutcome lead_generation(const LaunchPlan& plan, Generations& generations, GroupWatch& watch,
                            LeadingHost* others);

/// As another host does: carries out the orders of host 0 until the group is over. Returns its exit
/// code. Throws CommunicationError when host 0 is gone.
int follow_orders(const LaunchPlan& plan, FollowingHost& leader, GroupWatch& watch,
                  const std::function<void(const std::string&)>& announce);

/// Processes of each host that is here.
std::map<std::int64_t, std::int64_t> processes_of(const LaunchPlan& plan,
                                                  const LeadingHost* others);

/// The failure and its last lines, for people.
std::string report_of(const GroupOutcome& outcome);

}  // namespace treadle::launch
