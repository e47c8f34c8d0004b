#pragma once

#include <string>

namespace treadle::cli {

/// While it lives, the standard output of this process, and of those that it starts, goes into
/// memory. One at a time, in a program without other threads.
class CapturedOutput {
 public:
  /// Throws std::system_error where the system has no memory or no descriptors for it.
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  /// Gives the standard output back. Returns what was written to it.
  std::string finish();

 private:
  void restore();

  int memory_ = -1;
  int output_ = -1;  // the standard output itself; -1: given back
};

}  // namespace treadle::cli
