#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <treadle/host/launch/addresses.h>

namespace treadle::launch {

/// The command of a group of processes, and when to start it again.
struct LaunchPlan {
  /// The program of generation 0 and its words.
  std::vector<std::string> command;
  /// The same for a generation that goes on with the run which rank 0 recorded (GroupFolder). It is
  /// not called where none was recorded: then `command` starts anew.
  std::function<std::vector<std::string>(const std::filesystem::path& run)> resuming;
  /// Processes on this host.
  std::int64_t processes = 1;
  /// New generations after a process was lost.
  std::int64_t restarts = 3;
  /// A generation that loses a process at once is followed by one with a process less on that host,
  /// down to so many in the whole group. 0: never.
  std::int64_t least_processes = 0;
  /// Of each call of a communicator; twice as long without a heartbeat is a hang. Hosts wait so
  /// long for each other.
  std::chrono::milliseconds timeout{60'000};
  /// After a failure the others notice it and end by themselves; they have this long, and then so
  /// long after a SIGTERM, so that all have ended within a second.
  std::chrono::milliseconds settling{300};
  std::chrono::milliseconds grace{500};
  /// Hosts of the group, each with a supervisor of its own, and the number of this one. Host 0
  /// decides: about `restarts` and `least_processes`, too.
  std::int64_t hosts = 1;
  std::int64_t host = 0;
  /// Where the supervisors meet: host 0, and a port that is free there. With several hosts alone.
  Endpoint at = {};
};

/// Starts the processes of a group on this host and watches them: a process that fails, or hangs,
/// ends the group within a second; where a process was lost, the next generation resumes its run.
/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 ask all processes to stop (each gets SIGTERM),
/// however long saving takes; a second SIGINT kills them. No process outlives this one.
///
/// With several hosts the supervisors are connected: a failure or a stop on one of them is that of
/// all. They trust each other and their network: nothing is encrypted.
///
/// To be used by the main thread of a program without other threads.
class Supervisor {
 public:
  /// `announce` gets each event in one or more lines, for people: failures, restarts.
  Supervisor(LaunchPlan plan, std::function<void(const std::string&)> announce);

  /// Runs the group to its end. Returns its exit code: 0, 130 after a stop, 8 where a process was
  /// lost for good, else the code of the process that failed first. Throws StorageError or
  /// std::system_error where nothing can be started, CommunicationError where hosts do not meet.
  int run();

 private:
  int lead();
  int follow();

  LaunchPlan plan_;
  std::function<void(const std::string&)> announce_;
};

}  // namespace treadle::launch
