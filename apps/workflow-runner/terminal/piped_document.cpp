#include "terminal/piped_document.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <treadle/base/document.h>

namespace treadle::cli {
namespace {

/// 63 of "/dev/fd/63", 0 of "/dev/stdin"; nothing for other paths.
std::optional<int> descriptor_in(std::string_view path) {
  if (path == "/dev/stdin")
    return STDIN_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = 0;
    if (path.starts_with(folder) &&
        std::from_chars(path.data() + folder.size(), path.data() + path.size(), number).ptr ==
            path.data() + path.size())
      return number;
  }
  return std::nullopt;
}

/// Up to one byte more than a document may have: its reader refuses that.
bool copy(int from, int to) {
  std::array<char, 1 << 16> bytes{};
  for (std::size_t copied = 0; copied <= Document::kMaxBytes;) {
    const ssize_t count = read(from, bytes.data(), bytes.size());
    if (count == 0)
      return true;
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 || write(to, bytes.data(), static_cast<std::size_t>(count)) != count)
      return false;
    copied += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

void keep_piped_document(char*& word) {
  struct stat file {};
  if (stat(word, &file) != 0 || S_ISREG(file.st_mode) || S_ISDIR(file.st_mode))
    return;
  const int pipe = open(word, O_RDONLY | O_CLOEXEC);
  const int memory = memfd_create("document", 0);
  if (pipe >= 0 && memory >= 0 && copy(pipe, memory)) {
    if (const std::optional<int> descriptor = descriptor_in(word)) {
      dup2(memory, *descriptor);
      close(memory);
    } else {
      static std::string path;
      path = "/dev/fd/" + std::to_string(memory);
      word = path.data();
    }
  }
  if (pipe >= 0)
    close(pipe);
}

}  // namespace treadle::cli
