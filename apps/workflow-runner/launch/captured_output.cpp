#include "launch/captured_output.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace treadle::cli {

CapturedOutput::CapturedOutput()
    : memory_(memfd_create("output", MFD_CLOEXEC)),
      output_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {
  if (memory_ >= 0 && output_ >= 0 && dup2(memory_, STDOUT_FILENO) >= 0)
    return;
  const std::error_code reason(errno, std::generic_category());
  restore();
  throw std::system_error(reason, "the output of processes cannot be read");
}

CapturedOutput::~CapturedOutput() {
  restore();
}

std::string CapturedOutput::finish() {
  std::string text;
  std::array<char, 1 << 12> bytes{};
  for (off_t at = 0;; at = static_cast<off_t>(text.size())) {
    const ssize_t count = pread(memory_, bytes.data(), bytes.size(), at);
    if (count <= 0)
      break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  restore();
  return text;
}

void CapturedOutput::restore() {
  if (output_ >= 0) {
    dup2(output_, STDOUT_FILENO);
    close(output_);
  }
  if (memory_ >= 0)
    close(memory_);
  memory_ = output_ = -1;
}

}  // namespace treadle::cli
