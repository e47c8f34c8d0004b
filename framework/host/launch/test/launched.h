#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace treadle::launch {

inline constexpr int kStopped = 130;
inline constexpr int kLost = 8;

/// The end of a launch.
struct Ended {
  int code = -1;  ///< 128 + the signal's number where a signal ended it
  std::string out;
  std::string err;
  std::chrono::milliseconds time{};
};

/// A supervisor of fake ranks in a process of its own, in a folder of the test's.
class Launched {
 public:
  /// `words` are those of fake_launch.cpp.
  /// `name` is that of its output's files.
  Launched(const std::filesystem::path& folder, const std::vector<std::string>& words,
           const std::string& name = "");
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  pid_t id() const { return id_; }
  void send(int signal) const;
  /// Waits until it has announced that text, for 20 seconds at most.
  bool has_announced(const std::string& text) const;
  Ended wait();

 private:
  std::string text(const char* stream) const;

  std::filesystem::path folder_;
  std::string name_;
  pid_t id_ = -1;
  std::chrono::steady_clock::time_point begin_;
};

/// A test with a folder of its own, which also holds the folders of its groups.
class Launches : public ::testing::Test {
 protected:
  Launches();
  ~Launches() override;

  Ended launch(const std::vector<std::string>& words) { return Launched(folder_, words).wait(); }
  /// Those that act "pid" has written, in all generations.
  std::vector<pid_t> pids() const;
  void await_pids(std::size_t count) const;
  /// Of those, whichever lives after two seconds.
  std::vector<pid_t> living() const;
  /// Folders of groups that were left behind.
  std::vector<std::string> group_folders() const;

  std::filesystem::path folder_;
};

}  // namespace treadle::launch
