#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "workspace.h"

namespace treadle::testing {

/// Where a test finds workflow-runner.
inline std::string runner() {
  return (build_folder() / "bin" / "workflow-runner").string();
}

/// A command as a process of its own, such as the app. Killed, if need be, at the latest when this
/// object goes. For one thread.
class AppProcess {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    fs::path output = {};                       ///< what it prints is appended there
    std::vector<std::string> environment = {};  ///< "NAME=value", beside this process's own
  };

  explicit AppProcess(const std::vector<std::string>& words) : AppProcess(words, Options()) {}
  AppProcess(std::vector<std::string> words, const Options& options) {
    std::vector<std::string> variables = options.environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
      variables.emplace_back(*variable);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (!options.output.empty()) {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.output.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
      posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    EXPECT_EQ(posix_spawn(&id_, words[0].c_str(), &actions, nullptr, pointers_to(words).data(),
                          pointers_to(variables).data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~AppProcess() {
    if (!ended())
      kill_now();
  }
  AppProcess(const AppProcess&) = delete;
  AppProcess& operator=(const AppProcess&) = delete;

  bool ended() {
    if (!ended_ && waitpid(id_, &status_, WNOHANG) == id_)
      ended_ = true;
    return ended_;
  }
  void kill_now() {
    signal(SIGKILL);
    join();
  }
  /// It has not ended yet.
  void signal(int number) const { ::kill(id_, number); }
  /// The exit code, once it has ended; -1: a signal ended it.
  int join() {
    if (!ended_)
      waitpid(id_, &status_, 0);
    ended_ = true;
    return exit_code();
  }
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

  /// Until `condition` holds, the process has ended or the time is over.
  template <typename Condition>
  void wait(Clock::duration patience, Condition&& condition) {
    const auto until = Clock::now() + patience;
    while (!ended() && Clock::now() < until && !condition())
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  void wait(Clock::duration patience) {
    wait(patience, [] { return false; });
  }

 private:
  /// For exec(), which takes texts that may be written to.
  static std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts)
      pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  pid_t id_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace treadle::testing
