#pragma once

#include <cstdint>
#include <filesystem>

#include <treadle/host/launch/locked_folder.h>

namespace treadle::launch {

/// The folder that the processes of a group on one host share, new for each generation:
///
///     lock          locked while the supervisor lives
///     meeting/      empty at first; for the communicator alone
///     run           rank 0 writes it: the path of the run that a later generation resumes
///     rank-1.log    the output of rank 1; rank 0 has the output of `launch`
///
/// A LockedFolder in XDG_RUNTIME_DIR or the folder for temporary files. Supervisor owns it.
class GroupFolder {
 public:
  /// Throws StorageError where none can be made.
  GroupFolder();

  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path output_of(std::int64_t rank) const;
  /// Absolute; empty: rank 0 has not begun a run.
  std::filesystem::path recorded_run() const;

  static std::filesystem::path meeting_in(const std::filesystem::path& group_folder);
  /// Rank 0 calls it once its run can be resumed. Throws StorageError.
  static void record_run(const std::filesystem::path& group_folder,
                         const std::filesystem::path& run);

 private:
  LockedFolder folder_;
};

}  // namespace treadle::launch
