#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace treadle::fuzz {

/// A file with these bytes that lies in memory only: millions of files on disk would take their
/// time.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::fchmod(descriptor_, 0600) != 0 ||
        ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      throw std::system_error(errno, std::generic_category(), "cannot make a file in memory");
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  void truncate(std::size_t size) const {
    if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot truncate a file in memory");
  }

 private:
  int descriptor_;
};

}  // namespace treadle::fuzz
