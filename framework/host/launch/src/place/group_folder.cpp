#include <treadle/host/launch/group_folder.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>

namespace treadle::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "treadle-launch-";
constexpr const char* kRunFile = "run";
constexpr const char* kLockFile = "lock";

/// The user's own folder of the session where it is what it should be, as the specification asks.
fs::path folder_for_folders() {
  struct stat about {};
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  if (own != nullptr && own[0] == '/' && ::stat(own, &about) == 0 && S_ISDIR(about.st_mode) &&
      about.st_uid == ::geteuid() && (about.st_mode & 0077) == 0 && ::access(own, W_OK) == 0)
    return own;
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  return error ? fs::path("/tmp") : temporary;
}

/// The file that is locked as long as its process lives; -1: it is locked, or is not there.
int take_lock(const fs::path& file, int flags) {
  const int lock = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return -1;
  }
  return lock;
}

/// Of supervisors that were killed.
void remove_folders_left_behind(const fs::path& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    struct stat about {};
    if (!entry.path().filename().string().starts_with(kPrefix) ||
        ::lstat(entry.path().c_str(), &about) != 0 || !S_ISDIR(about.st_mode) ||
        about.st_uid != ::geteuid())
      continue;
    const int lock = take_lock(entry.path() / kLockFile, 0);
    if (lock < 0)
      continue;
    fs::remove_all(entry.path(), ignored);
    ::close(lock);
  }
}

}  // namespace

GroupFolder::GroupFolder() {
  const fs::path parent = folder_for_folders();
  remove_folders_left_behind(parent);
  std::string pattern = (parent / "treadle-launch-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw StorageError(pattern + ": no folder for the processes can be made (" +
                       std::generic_category().message(errno) +
                       "); set TMPDIR to a folder that you may write to");
  }
  path_ = pattern;
  if (::mkdir(meeting_in(path_).c_str(), 0700) != 0) {
    const int reason = errno;
    ::rmdir(path_.c_str());
    throw StorageError(path_.string() + ": no folder can be made in it (" +
                       std::generic_category().message(reason) + ")");
  }
  // Locked before it has its name: others never find one that is free.
  lock_ = take_lock(path_ / "new", O_CREAT | O_EXCL);
  ::rename((path_ / "new").c_str(), (path_ / kLockFile).c_str());
}

GroupFolder::~GroupFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0)
    ::close(lock_);
}

fs::path GroupFolder::output_of(std::int64_t rank) const {
  return path_ / ("rank-" + std::to_string(rank) + ".log");
}

fs::path GroupFolder::recorded_run() const {
  std::ifstream file(path_ / kRunFile, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text;
}

fs::path GroupFolder::meeting_in(const fs::path& group_folder) {
  return group_folder / "meeting";
}

void GroupFolder::record_run(const fs::path& group_folder, const fs::path& run) {
  write_file_atomically(group_folder / kRunFile, fs::absolute(run).string());
}

}  // namespace treadle::launch
