#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <treadle/host/launch/group_report.h>
#include <treadle/host/launch/host_facts.h>
#include <treadle/host/launch/supervisor.h>

namespace treadle::launch {

/// A group before it trains: its hosts, which of them reach each other, and what its processes
/// report. Made by check_group().
struct GroupCheck {
  struct Host {
    std::int64_t number = 0;
    std::int64_t first_rank = 0;
    std::int64_t processes = 1;
    std::string address = {};  ///< by which others reach it; empty for a host alone
    HostFacts facts = {};
  };
  /// A connection from one host to another.
  struct Link {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::optional<double> milliseconds = {};  ///< until it was made; nothing: it was not
  };

  std::vector<Host> hosts;
  std::vector<Link> links;
  std::optional<GroupReport> report;  ///< nothing: the processes made none
  std::string failure;                ///< of the processes, a sentence; empty: none

  /// Sets the report of rank 0. Its problems, where there are any, replace the failure.
  void add(GroupReport its);
  /// The report of the first process of a host; null without a report.
  const GroupReport::Rank* rank_of(const Host& host) const;
  /// Sentences about what keeps the group from training.
  std::vector<std::string> problems() const;
  /// Sentences about what costs time.
  std::vector<std::string> doubts() const;
};

struct CheckEnd {
  std::optional<GroupCheck> check;  ///< on host 0; without the report of its processes
  int code = 0;
};
/// Gathers the hosts of the plan and lets each connect to every other one, on a port that is free.
/// Where they do, starts the plan's processes as for a training, once: those of a check connect,
/// and rank 0 writes a GroupReport to its standard output. `announce` is Supervisor's. Throws
/// CommunicationError where hosts do not meet within the plan's time-out, else as
/// Supervisor::run().
CheckEnd check_group(LaunchPlan plan, const std::function<void(const std::string&)>& announce);

}  // namespace treadle::launch
