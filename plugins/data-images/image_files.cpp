#include "image_files.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "picture.h"

namespace treadle::images {
namespace {

[[noreturn]] void refuse_with_errno() {
  throw BadImage("cannot be read: " + std::generic_category().message(errno));
}

class OpenFile {
 public:
  // A pipe without a writer would wait forever.
  explicit OpenFile(const std::filesystem::path& file)
      : descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0)
      refuse_with_errno();
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(descriptor_); }

  FileStamp stamp() const {
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0)
      refuse_with_errno();
    if (!S_ISREG(status.st_mode))
      throw BadImage("is no file");
    return {status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
            status.st_ino};
  }

  void read(std::uint8_t* to, std::size_t count) const {
    while (count > 0) {
      const ::ssize_t got = ::read(descriptor_, to, count);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        refuse_with_errno();
      if (got == 0)
        throw BadImage("became shorter while it was read");
      to += got;
      count -= static_cast<std::size_t>(got);
    }
  }

 private:
  int descriptor_;
};

}  // namespace

FileStamp read_file(const std::filesystem::path& file, std::int64_t most_bytes,
                    std::vector<std::uint8_t>& bytes) {
  const OpenFile open(file);
  const FileStamp stamp = open.stamp();
  if (stamp.size > most_bytes) {
    throw BadImage("has " + std::to_string(stamp.size) +
                   " bytes, more than an image of \"max_pixels\" pixels can have");
  }
  bytes.resize(static_cast<std::size_t>(stamp.size));
  open.read(bytes.data(), bytes.size());
  return stamp;
}

std::int64_t most_bytes_of(std::int64_t max_pixels) {
  return 8 * max_pixels + (std::int64_t{64} << 20);
}

}  // namespace treadle::images
