#include "journal_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>

#include <treadle/search/storage/local_disk.h>
#include <treadle/search/storage/stored_text.h>

namespace treadle::storages {
namespace {

template <typename Call>
auto without_signals(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR)
    result = call();
  return result;
}

// A new file has a name only once its folder is on disk.
void sync_folder(const std::filesystem::path& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0)
    return;
  ::fsync(opened);
  ::close(opened);
}

}  // namespace

JournalFile::JournalFile(std::filesystem::path path, std::string first_line)
    : path_(std::move(path)), first_line_(std::move(first_line)) {
  expect_local_disk(path_);
  file_ = without_signals(
      [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666); });
  if (file_ < 0)
    fail("cannot be opened");
}

JournalFile::~JournalFile() {
  ::close(file_);
}

void JournalFile::fail(std::string_view what) const {
  const int error = errno;
  throw StorageError(
      path_.string() + ": " + std::string(what) + ": " + std::generic_category().message(error) +
      (error == ENOSPC || error == EDQUOT ? "; make room on the disk: what the study had is kept"
                                          : "; make it writable, or choose another location"));
}

JournalFile::Lock::~Lock() {
  if (file_ >= 0)
    ::flock(file_, LOCK_UN);
}

JournalFile::Lock JournalFile::lock(Patience patience) const {
  while (without_signals([&] { return ::flock(file_, LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK)
      fail("cannot be locked");
    if (!patience.wait())
      refuse_locked(path_.string(), patience.limit());
  }
  return Lock(file_);
}

void JournalFile::expect_same_file() const {
  struct stat here = {};
  struct stat open = {};
  if (::fstat(file_, &open) != 0)
    fail("its size cannot be read");
  if (::stat(path_.c_str(), &here) != 0 || here.st_ino != open.st_ino ||
      static_cast<std::uint64_t>(open.st_size) < read_)
    refuse_replaced(path_.string());
}

void JournalFile::read_new(
    const std::function<void(std::string_view line, const std::string& place)>& read) {
  expect_same_file();
  std::string tail;
  std::uint64_t end = read_;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = without_signals(
        [&] { return ::pread(file_, buffer, sizeof buffer, static_cast<off_t>(end)); });
    if (count < 0)
      fail("cannot be read");
    if (count == 0)
      break;
    tail.append(buffer, static_cast<std::size_t>(count));
    end += static_cast<std::uint64_t>(count);
  }
  std::string_view rest = tail;
  for (std::size_t length = 0; (length = rest.find('\n')) != rest.npos;) {
    const std::string_view line = rest.substr(0, length);
    // After a power failure the last line may have its length and not its bytes.
    if (line.find('\0') != line.npos && length + 1 == rest.size())
      break;
    read(line, path_.string() + ":" + std::to_string(lines_ + 1));
    rest.remove_prefix(length + 1);
    read_ += length + 1;
    ++lines_;
  }
  if (rest.empty())
    return;
  if (read_ == 0 && !first_line_.starts_with(rest))
    refuse_foreign(path_.string(), first_line_);
  truncate(read_);
}

void JournalFile::append(std::string_view line) {
  const std::string whole = std::string(line) + "\n";
  const auto take_back = [&](const char* what) {
    const int error = errno;
    truncate(read_);
    errno = error;
    fail(what);
  };
  for (std::string_view rest = whole; !rest.empty();) {
    const ssize_t count = without_signals([&] { return ::write(file_, rest.data(), rest.size()); });
    if (count < 0)
      take_back("cannot be written");
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  if (without_signals([&] { return ::fdatasync(file_); }) != 0)
    take_back("cannot be synced to disk");
  if (read_ == 0)
    sync_folder(path_.parent_path());
  read_ += whole.size();
  ++lines_;
}

void JournalFile::truncate(std::uint64_t size) const {
  if (without_signals([&] { return ::ftruncate(file_, static_cast<off_t>(size)); }) != 0)
    fail("cannot be cut");
}

}  // namespace treadle::storages
