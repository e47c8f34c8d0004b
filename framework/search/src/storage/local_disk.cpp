#include <treadle/search/storage/local_disk.h>

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include <treadle/base/error.h>

namespace treadle::storages {
namespace {

struct FileSystem {
  std::uint32_t magic;
  const char* name;
};

// statfs(2), and include/uapi/linux/magic.h of Linux; Lustre, GPFS and BeeGFS by their own sources.
constexpr std::array kShared{FileSystem{0x6969, "NFS"},
                             FileSystem{0xFF534D42, "CIFS"},
                             FileSystem{0xFE534D42, "SMB"},
                             FileSystem{0x517B, "SMB"},
                             FileSystem{0x01021997, "9p"},
                             FileSystem{0x65735546, "FUSE (sshfs, for one)"},
                             FileSystem{0x00C36400, "Ceph"},
                             FileSystem{0x5346414F, "AFS"},
                             FileSystem{0x6B414653, "AFS"},
                             FileSystem{0x73757245, "Coda"},
                             FileSystem{0x01161970, "GFS2"},
                             FileSystem{0x7461636F, "OCFS2"},
                             FileSystem{0x0BD00BD0, "Lustre"},
                             FileSystem{0x47504653, "GPFS"},
                             FileSystem{0x19830326, "BeeGFS"},
                             FileSystem{0x786F4256, "a folder of VirtualBox"},
                             FileSystem{0xBACBACBC, "a folder of VMware"}};

}  // namespace

void expect_local_disk(const std::filesystem::path& path) {
  const std::filesystem::path there = std::filesystem::exists(path) ? path : path.parent_path();
  struct statfs status = {};
  if (statfs(there.c_str(), &status) != 0)
    throw StorageError(path.string() +
                       ": cannot be opened: " + std::generic_category().message(errno) +
                       "; make the folder, or choose another location");
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  const auto found = std::find_if(kShared.begin(), kShared.end(),
                                  [&](const FileSystem& system) { return system.magic == magic; });
  if (found != kShared.end())
    throw StorageError(path.string() + ": lies on a file system that machines share, " +
                       found->name +
                       ", where locks do not hold; choose a location on a local disk, or the "
                       "storage \"postgresql\", which is for several machines");
}

}  // namespace treadle::storages
