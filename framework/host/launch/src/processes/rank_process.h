#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "processes/heartbeat_channel.h"

namespace treadle::launch {

/// A process of a group, in a process group of its own, which goes with it. The system kills it
/// when this process dies. Made and destroyed by one thread, whose signal mask it does not inherit.
class RankProcess {
 public:
  struct Start {
    std::vector<std::string> command;      ///< a program, found as a shell finds it, and its words
    std::vector<std::string> environment;  ///< "NAME=value"; without that of the heartbeat
    std::filesystem::path output;          ///< for its output; empty: that of this process
  };

  /// Throws std::system_error where the system starts no process, StorageError where the program
  /// or the file for its output cannot be opened.
  RankProcess(std::int64_t rank, const Start& start);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  std::int64_t rank() const { return rank_; }
  pid_t id() const { return id_; }
  HeartbeatChannel& heartbeat() { return heartbeat_; }
  const HeartbeatChannel& heartbeat() const { return heartbeat_; }

  /// Looks whether it has ended by now.
  bool has_ended();
  /// Whether a signal has stopped it where it is, as SIGSTOP does.
  bool is_frozen() const;
  /// Of waitpid(). Expects has_ended().
  int status() const { return *status_; }

  /// To the process, while it lives.
  void send(int signal) const;
  /// At once, with everything it has started; waits until it is gone.
  void kill();

 private:
  /// The process that started the new one, and the pipe for an error.
  struct Parent {
    pid_t id;
    int report;
  };
  [[noreturn]] void become(char* const* command, char* const* environment, int output,
                           const Parent& parent) const;
  void await();

  std::int64_t rank_;
  pid_t id_ = -1;
  std::optional<int> status_;
  HeartbeatChannel heartbeat_;
};

}  // namespace treadle::launch
