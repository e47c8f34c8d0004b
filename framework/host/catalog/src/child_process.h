#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace treadle::internal {

/// A helper process in a process group of its own, with a channel on which it answers and its
/// output kept. Destroying it kills the group.
class ChildProcess {
 public:
  /// Starts `program` with the arguments, its standard input empty, `channel` as the descriptor of
  /// that number. Throws PluginError when it cannot be started.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment, int channel);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  enum class Event { kLine, kEnded, kTimeout };

  /// Waits for the next line on the channel. kEnded: the process is gone and every line was read.
  /// Lines over 64 KiB are cut.
  Event next_line(std::string& line, std::chrono::steady_clock::time_point deadline);

  /// Ends the whole group now.
  void kill();

  /// How the process ended: "SIGSEGV", "exit code 3". Expects kEnded or kill().
  std::string ending() const;
  bool ended_by_signal() const;
  /// The last 4 KiB of what it printed.
  const std::string& output() const { return output_; }

 private:
  void wait_for_input(std::chrono::milliseconds limit);
  void read_output();
  void read_channel();
  bool take_line(std::string& line);
  bool has_exited();

  pid_t process_ = -1;
  int channel_ = -1;
  int printed_ = -1;
  std::optional<int> status_;
  std::string received_;
  std::string output_;
};

}  // namespace treadle::internal
