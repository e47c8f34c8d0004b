#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <string>

#include <treadle/base/error.h>

namespace treadle::testing {

/// Catches what the process writes to standard output and standard error, whoever writes and by
/// whatever means, until text() or the end. One at a time.
class CapturedOutput {
 public:
  CapturedOutput() : file_(::memfd_create("treadle-captured-output", MFD_CLOEXEC)) {
    TREADLE_EXPECTS(file_ >= 0, "there is no memory for captured output");
    flush();
    for (std::size_t i = 0; i < kCaught.size(); ++i) {
      kept_[i] = ::fcntl(kCaught[i], F_DUPFD_CLOEXEC, 3);
      TREADLE_EXPECTS(kept_[i] >= 0 && ::dup2(file_, kCaught[i]) >= 0,
                      "standard output and standard error must be open to be captured");
    }
  }
  ~CapturedOutput() {
    release();
    ::close(file_);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  /// All that was written. From here on nothing is caught.
  std::string text() {
    release();
    std::string text(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
    TREADLE_EXPECTS(
        ::pread(file_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
        "captured output cannot be read");
    return text;
  }

 private:
  static constexpr std::array kCaught = {STDOUT_FILENO, STDERR_FILENO};

  static void flush() {
    std::cout.flush();
    std::cerr.flush();
    std::clog.flush();
    std::fflush(nullptr);
  }

  void release() {
    flush();
    for (std::size_t i = 0; i < kCaught.size(); ++i) {
      if (kept_[i] < 0)
        continue;
      ::dup2(kept_[i], kCaught[i]);
      ::close(kept_[i]);
      kept_[i] = -1;
    }
  }

  int file_;
  std::array<int, 2> kept_ = {-1, -1};
};

}  // namespace treadle::testing
