#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <treadle/host/launch/supervisor.h>

#include "hosts/message_socket.h"
#include "processes/group_watch.h"
#include "supervision/host_messages.h"

namespace treadle::launch {

/// The other hosts of a group, as host 0 sees them: it gathers them, starts a generation on all,
/// ends it everywhere when it fails somewhere, and dismisses them. A host that comes back while a
/// generation runs belongs to the next one. One thread.
class LeadingHost : public OtherHosts {
 public:
  struct Settings {
    Endpoint at;
    std::int64_t hosts = 2;
    std::chrono::milliseconds timeout{60'000};  ///< for hosts that are missing, or silent
    bool is_check = false;                      ///< no generation follows
  };

  /// Listens. Throws CommunicationError.
  explicit LeadingHost(Settings settings);

  /// Waits until all hosts are here, a signal stops the launch, or the time is over; a check also
  /// ends with the first host that is refused. Returns the missing ones: "host 1 (node-2), host 3".
  std::string gather(GroupWatch& watch);
  /// Those that are here, by their number; without host 0.
  std::map<std::int64_t, message::Hello> hosts() const;
  /// `starts`: those that take part in the generation.
  void start(const std::map<std::int64_t, message::Start>& starts);
  /// The failures of the generation on other hosts, in the order in which they were reported, with
  /// the hosts.
  const std::vector<std::pair<std::int64_t, GroupOutcome>>& outcomes() const { return outcomes_; }
  /// Lets each host connect to the others; the results of those that answer, by host.
  std::map<std::int64_t, std::vector<message::Reached>> probe(
      const std::vector<message::Target>& targets, std::chrono::milliseconds patience);
  void dismiss(int code);

  void add_descriptors(std::vector<pollfd>& descriptors) const override;
  void exchange(RankGroup& group) override;
  bool are_over() const override;

 private:
  struct Host {
    MessageSocket socket;
    message::Hello hello;
    bool is_running = false;  // takes part in the generation, and is not over
  };

  void admit();
  bool admit(MessageSocket& stranger, const nlohmann::json& message);
  std::string objection_to(const message::Hello& hello) const;
  void hear(std::int64_t number, Host& host, RankGroup& group);
  void drop_lost();
  void tell_running(const char* word);
  std::string name_of(std::int64_t number) const;

  Settings settings_;
  Socket listener_;
  std::list<MessageSocket> strangers_;  // without a hello
  std::map<std::int64_t, Host> hosts_;
  std::map<std::int64_t, std::string> names_;    // of hosts that are, were or wanted to be here
  std::map<std::int64_t, std::string> refused_;  // why, of hosts that are not here
  std::vector<std::pair<std::int64_t, GroupOutcome>> outcomes_;
  std::string last_step_;     // ", after step 7", of the last generation on this host
  bool has_ended_ = false;    // the generation, everywhere
  bool has_stopped_ = false;  // a stop was passed on
};

/// The sentence about hosts that gather() has missed.
std::string missing_text(const LaunchPlan& plan, const std::string& missing);

}  // namespace treadle::launch
