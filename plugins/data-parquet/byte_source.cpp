#include "byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <treadle/base/error.h>

#include "bytes.h"

namespace treadle::parquet {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

}  // namespace

FileSource::FileSource(const std::filesystem::path& path, const std::string& shown)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {
  if (descriptor_ < 0)
    throw DataError(shown + ": cannot be read: " + reason(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    const bool is_folder = S_ISDIR(status.st_mode);
    ::close(descriptor_);
    throw DataError(shown + (is_folder ? ": cannot be read: it is a folder"
                                       : ": cannot be read: it is no file that can be read at any "
                                         "place, which Parquet needs; save it to a disk first"));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

FileSource::~FileSource() {
  ::close(descriptor_);
}

void FileSource::read(std::uint64_t offset, char* to, std::size_t count) const {
  while (count > 0) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    const ssize_t got =
        ::pread(descriptor_, to, std::min(count, kMost), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Damage("it cannot be read: " + reason(errno));
    if (got == 0)
      throw Damage("the file ends before; it has become shorter while it was read");
    to += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

void MemorySource::read(std::uint64_t offset, char* to, std::size_t count) const {
  if (offset > bytes_.size() || count > bytes_.size() - offset)
    throw Damage("the file ends before");
  std::copy_n(bytes_.data() + offset, count, to);
}

}  // namespace treadle::parquet
