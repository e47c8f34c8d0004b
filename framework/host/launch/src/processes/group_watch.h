#pragma once

#include <vector>

#include "processes/rank_group.h"
#include "processes/signal_queue.h"

namespace treadle::launch {

/// The supervisors of other hosts, as the watch over the processes of this one sees them.
class OtherHosts {
 public:
  virtual ~OtherHosts() = default;

  virtual void add_descriptors(std::vector<pollfd>& descriptors) const = 0;
  /// Reads messages, and stops or ends `group` as they order; reports its state to the others.
  virtual void exchange(RankGroup& group) = 0;
  /// Whether nobody else is awaited in this generation.
  virtual bool are_over() const = 0;
};

/// Watches the processes of a generation until all of this host have ended, and passes on the
/// signals that this process gets.
class GroupWatch {
 public:
  explicit GroupWatch(SignalQueue& signals) : signals_(signals) {}

  /// `others`: null where all processes are on this host.
  void watch(RankGroup& group, OtherHosts* others);
  /// The same while no group runs: reads the signals that have come.
  void take_signals();
  /// To poll for them.
  int descriptor() const { return signals_.descriptor(); }
  /// SIGTERM or the like has come, now or in an earlier generation.
  bool is_stopping() const { return is_stopping_; }

 private:
  void pass_on(int signal, RankGroup& group);
  static void pause(RankGroup& group);

  SignalQueue& signals_;
  bool is_stopping_ = false;
};

}  // namespace treadle::launch
