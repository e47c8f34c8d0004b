#pragma once

#include <filesystem>
#include <string>

namespace treadle::launch {

/// A folder for the temporary files of this process, for its user alone (0700), under a name that
/// nobody can predict. It goes with the object, and where the process was killed, with the next
/// object of the same kind: a lock in it is held as long as the process lives.
class LockedFolder {
 public:
  /// `kind` is the beginning of its name: "treadle-launch-". Throws StorageError where none can be
  /// made.
  LockedFolder(const std::filesystem::path& parent, const std::string& kind);
  ~LockedFolder();
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace treadle::launch
