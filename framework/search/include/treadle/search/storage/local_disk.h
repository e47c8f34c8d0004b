#pragma once

#include <filesystem>

namespace treadle::storages {

/// Throws a StorageError for a place on a file system that other machines may write as well (NFS,
/// SMB, FUSE …). Locks, shared memory and the clock of one machine do not hold between several:
/// that is what damages SQLite's databases there. `path` need not exist, its folder must.
void expect_local_disk(const std::filesystem::path& path);

}  // namespace treadle::storages
