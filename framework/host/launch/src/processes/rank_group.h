#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include <treadle/host/launch/group_folder.h>

#include "processes/rank_process.h"

namespace treadle::launch {

/// How the processes of a generation ended on this host.
struct GroupOutcome {
  int code = 0;  ///< 0, 130, or that of the process that failed first
  /// A process is gone or hangs: another generation may do better. Mistakes in a document or its
  /// data are none of these.
  bool is_lost = false;
  /// Not merely the loss of another process, which that process explains.
  bool is_cause = true;
  std::string message = {};        ///< the failure; empty for 0 and 130
  bool is_explained = false;       ///< by rank 0, on the terminal
  std::string last_lines = {};     ///< of the failed process, where its output is in a file
  std::filesystem::path run = {};  ///< that rank 0 recorded; empty: none
};

/// The processes of one generation on this host, from their start to their end. One thread, which
/// calls check() whenever a descriptor is readable, a process ended, or the time is over.
class RankGroup {
 public:
  using Clock = std::chrono::steady_clock;

  struct Plan {
    std::vector<std::string> command;
    std::int64_t first_rank = 0;
    std::int64_t processes = 1;  ///< on this host
    std::int64_t world_size = 1;
    std::string job_id = {};
    std::int64_t generation = 0;
    std::string token = {};
    std::string address = {};  ///< empty: all are on this host
    std::int64_t workers = 1;  ///< threads of each process
    std::chrono::milliseconds timeout{60'000};
    std::chrono::milliseconds silence{120'000};  ///< between two beats, before it is a hang
    std::chrono::milliseconds settling{300};     ///< as in LaunchPlan
    std::chrono::milliseconds grace{500};
  };

  /// Starts all of them. Throws std::system_error or StorageError, with none left behind.
  explicit RankGroup(Plan plan);

  /// Descriptors to poll for reading.
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  /// When to call check() at the latest.
  std::chrono::milliseconds patience() const;
  void check();

  /// All are to save their work and end, however long that takes.
  void ask_to_stop();
  /// At once; the group counts as stopped.
  void kill();
  /// A process elsewhere has failed: those here would wait for it in vain.
  void end();
  /// The whole group stands still, and goes on, with its supervisor.
  void freeze();
  void thaw();

  bool is_over() const { return processes_.empty(); }
  /// The rest is ending, because a process failed.
  bool is_ending() const { return failure_ || ask_at_ || kill_at_; }
  bool has_failed() const { return failure_.has_value(); }
  bool is_stopping() const { return is_stopping_; }
  /// The last one that any of its processes has reported, in words for a message; empty: none.
  std::string last_step_words() const;
  /// Expects is_over().
  GroupOutcome outcome() const;
  /// The outcome by now, while processes live.
  GroupOutcome outcome_so_far() const;

 private:
  /// A process that failed.
  struct Failure {
    std::int64_t rank = 0;
    int code = 0;
    bool is_lost = false;
    bool is_cause = true;  ///< not merely the loss of another process
    std::string message = {};
  };

  std::vector<std::string> environment_of(std::int64_t local_rank) const;
  void note_end(const RankProcess& process);
  void note_hangs(Clock::time_point now);
  void note_frozen();
  void note(Failure failure);
  void send(int signal);
  static std::string words_of(const RankProcess& process);
  static std::string step_words(std::int64_t step);
  std::string last_lines_of(std::int64_t rank) const;

  Plan plan_;
  GroupFolder folder_;
  std::list<RankProcess> processes_;  // those that live
  std::optional<Failure> failure_;
  std::string last_lines_;
  std::int64_t last_step_ = -1;
  bool is_stopping_ = false;
  bool was_stopped_ = false;  // a process ended by 130 or the stop
  // When to ask those that live to end, and when to kill them; once one has failed.
  std::optional<Clock::time_point> ask_at_;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace treadle::launch
