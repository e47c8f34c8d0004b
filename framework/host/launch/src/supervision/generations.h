#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <treadle/host/launch/supervisor.h>

#include "processes/rank_group.h"
#include "supervision/host_messages.h"

namespace treadle::launch {

/// The decisions of host 0 about a group: how many processes each host starts, whether another
/// generation follows, and how many it has.
class Generations {
 public:
  explicit Generations(const LaunchPlan& plan);

  /// Processes of each host that is here, host 0 included. Those that a restart took away stay
  /// away.
  void set_hosts(const std::map<std::int64_t, std::int64_t>& processes);
  /// A new generation: its start on each host.
  std::map<std::int64_t, message::Start> begin(const std::string& address);
  /// The generation is over: with this outcome, on that host. Returns whether another follows.
  bool end(std::int64_t host, const GroupOutcome& outcome);

  std::int64_t world_size() const;
  std::int64_t generation() const { return generation_; }
  const std::filesystem::path& run() const { return run_; }

 private:
  std::int64_t restarts_;
  std::int64_t least_processes_;
  std::map<std::int64_t, std::int64_t> processes_;  // by host
  std::map<std::int64_t, std::int64_t> fewer_;      // taken away, by host
  std::string job_id_;
  std::int64_t generation_ = -1;
  std::filesystem::path run_;
  std::chrono::steady_clock::time_point begin_{};
};

}  // namespace treadle::launch
