#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "hosts/message_socket.h"
#include "processes/group_watch.h"
#include "supervision/host_messages.h"

namespace treadle::launch {

/// Host 0 of a group, as another host sees it. One thread.
class FollowingHost : public OtherHosts {
 public:
  /// Joins. Throws CommunicationError where host 0 cannot be reached, refuses, or is no launch.
  FollowingHost(const Endpoint& at, const message::Hello& hello, std::chrono::milliseconds timeout);

  /// Waits for an order between generations: the next one, or the exit code of the group. Throws
  /// CommunicationError when host 0 is gone.
  struct Order {
    std::optional<message::Start> start = {};
    std::vector<message::Target> targets = {};  ///< of a check: to connect to
    int code = 0;
  };
  Order await_order(GroupWatch& watch);
  void report(const GroupOutcome& outcome);
  void report(const std::vector<message::Reached>& reached);

  void add_descriptors(std::vector<pollfd>& descriptors) const override;
  void exchange(RankGroup& group) override;
  bool are_over() const override { return true; }

 private:
  void report_stop();

  std::string at_;
  MessageSocket leader_;
  std::string last_step_;     // ", after step 7", of the last generation
  bool has_failed_ = false;   // of the generation: host 0 has the failure, or has ordered the end
  bool has_stopped_ = false;  // host 0 has the request, or has made it
};

}  // namespace treadle::launch
