#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/host/launch/host_facts.h>
#include <treadle/host/launch/supervisor.h>

namespace treadle::launch {

/// A group before it trains: its hosts, and which of them reach each other. Made by
/// check_group().
struct GroupCheck {
  struct Host {
    std::int64_t number = 0;
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

  /// Sentences about what keeps the group from training.
  std::vector<std::string> problems() const;
  /// Sentences about what costs time, or the same bits on all hosts.
  std::vector<std::string> doubts() const;
};

/// Gathers the hosts of the plan and lets each connect to every other one, on a port that is free;
/// starts no process. Returns the check on host 0, and nothing on others, which exit with `code`.
/// Throws CommunicationError where hosts do not meet within the plan's time-out.
struct CheckEnd {
  std::optional<GroupCheck> check;
  int code = 0;
};
CheckEnd check_group(const LaunchPlan& plan);

}  // namespace treadle::launch
