#include <treadle/host/launch/locked_folder.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <treadle/base/error.h>

namespace treadle::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = "lock";

/// The file that is locked as long as its process lives; -1: it is locked, or is not there.
int take_lock(const fs::path& file, int flags) {
  const int lock = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return -1;
  }
  return lock;
}

/// Of processes that were killed.
void remove_folders_left_behind(const fs::path& parent, const std::string& kind) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    struct stat about {};
    if (!entry.path().filename().string().starts_with(kind) ||
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

LockedFolder::LockedFolder(const fs::path& parent, const std::string& kind) {
  remove_folders_left_behind(parent, kind);
  std::string pattern = (parent / (kind + "XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw StorageError(pattern + ": no folder for the processes can be made (" +
                       std::generic_category().message(errno) +
                       "); set TMPDIR to a folder that you may write to");
  }
  path_ = pattern;
  // Locked before it has its name: others never find one that is free.
  lock_ = take_lock(path_ / "new", O_CREAT | O_EXCL);
  ::rename((path_ / "new").c_str(), (path_ / kLockFile).c_str());
}

LockedFolder::~LockedFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0)
    ::close(lock_);
}

}  // namespace treadle::launch
