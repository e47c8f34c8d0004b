#include "file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>

namespace treadle {
namespace {

// What the user can do about a limit of the system's.
struct Remedy {
  int error_number;
  std::string_view text;
};
constexpr std::array kRemedies{
    Remedy{EFBIG, "; raise the limit on the size of files: ulimit -f unlimited"},
    Remedy{EMFILE, "; raise the limit on open files: ulimit -n 1024"},
    Remedy{ENFILE, "; the system has too many open files: close other programs"},
    Remedy{ELOOP, "; the symbolic links lead in a circle: remove them"}};

}  // namespace

void throw_storage_error(const std::filesystem::path& path, std::string_view what,
                         int error_number) {
  std::string text = path.string() + ": " + std::string(what) + ": " +
                     std::generic_category().message(error_number);
  for (const Remedy& remedy : kRemedies) {
    if (remedy.error_number == error_number)
      text += remedy.text;
  }
  throw StorageError(text);
}

FileDescriptor::FileDescriptor(std::filesystem::path path, int number)
    : path_(std::move(path)), number_(number) {}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : path_(std::move(other.path_)), number_(std::exchange(other.number_, -1)) {}

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0)
    ::close(number_);
}

FileDescriptor FileDescriptor::open(const std::filesystem::path& path, int flags,
                                    std::string_view what_fails) {
  int number = -1;
  do {
    number = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (number < 0 && errno == EINTR);
  if (number < 0)
    throw_storage_error(path, what_fails, errno);
  return {path, number};
}

FileDescriptor FileDescriptor::open_for_reading(const std::filesystem::path& path) {
  return open(path, O_RDONLY, "cannot be read");
}

std::size_t FileDescriptor::read(std::span<std::byte> into) const {
  for (;;) {
    const ssize_t count = ::read(number_, into.data(), into.size());
    if (count >= 0)
      return static_cast<std::size_t>(count);
    if (errno != EINTR)
      fail("cannot be read");
  }
}

void FileDescriptor::write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::write(number_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail("cannot be written");
    }
  }
}

void FileDescriptor::sync() const {
  // Pipes and some network file systems cannot sync; there is nothing a caller could do about it.
  while (::fsync(number_) != 0) {
    if (errno == EINVAL || errno == EROFS)
      return;
    if (errno != EINTR)
      fail("cannot be synced to disk");
  }
}

void FileDescriptor::truncate(std::uint64_t size) const {
  while (::ftruncate(number_, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR)
      fail("cannot be cut");
  }
}

std::uint64_t FileDescriptor::size() const {
  struct stat status = {};
  if (::fstat(number_, &status) != 0)
    fail("its size cannot be read");
  return static_cast<std::uint64_t>(status.st_size);
}

void FileDescriptor::close() {
  const int number = std::exchange(number_, -1);
  // After EINTR the descriptor is closed all the same on Linux.
  if (number >= 0 && ::close(number) != 0 && errno != EINTR)
    fail("cannot be written");
}

void FileDescriptor::fail(std::string_view what) const {
  throw_storage_error(path_, what, errno);
}

}  // namespace treadle
