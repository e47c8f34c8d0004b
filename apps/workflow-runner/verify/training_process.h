#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace treadle::cli {

/// Another process of this program. It has this one's terminal, so that Ctrl-C ends both, and only
/// its errors are shown. Destroying it kills it.
class TrainingProcess {
 public:
  /// With the file `input` as its standard input. Throws StorageError where it cannot be started.
  TrainingProcess(const std::vector<std::string>& arguments, const std::filesystem::path& input);
  ~TrainingProcess();
  TrainingProcess(const TrainingProcess&) = delete;
  TrainingProcess& operator=(const TrainingProcess&) = delete;

  /// Whether it has ended after that time at most.
  bool ends_within(std::chrono::milliseconds limit);
  /// At once, as by `kill -9`.
  void kill();
  /// Of one that has ended by itself.
  int exit_code() const;

 private:
  pid_t process_ = -1;
  std::optional<int> status_;
};

}  // namespace treadle::cli
