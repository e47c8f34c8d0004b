#include <treadle/testing/search/local_storage_contract.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <treadle/base/error.h>
#include <treadle/testing/search/wrong_system.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// State and steps of all claims.
class LocalStorageClaims : public ::testing::WithParamInterface<LocalStorageCase> {
 protected:
  static constexpr double kLong = 1000;  // seconds: longer than any test

  std::unique_ptr<StudyStorage> make(double patience = 30) const {
    return GetParam().make(path_, patience);
  }

  template <typename Call>
  static std::string error_of(Call&& call) {
    try {
      call();
    } catch (const StorageError& error) {
      return error.what();
    }
    return "none";
  }

  const ScratchFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "studies";
};

/// Mounts a disk of a megabyte at `folder`, for this process alone; false where the system does not
/// let us.
bool mount_small_disk(const std::filesystem::path& folder) {
  const uid_t user = geteuid();
  if (::unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0)
    return false;
  if (user != 0)
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

}  // namespace

LINKS_CLAIMS_OF(LocalStorage)

CLAIM(LocalStorage, AFullDiskIsAnErrorAndNothingIsLost) {
  ForkedProcess process([&] {
    TREADLE_EXPECTS(mount_small_disk(folder_.path()), "no mount");
    const auto storage = make();
    storage->create("study", 1);
    std::int64_t kept = 0;
    const std::string said = error_of([&] {
      for (;; ++kept) {
        storage->claim("study", kept, "A", kLong);
        if (!storage->finish("study", kept, "A", std::string(20'000, 'x')))
          throw ContractViolation("A has the job");
      }
    });
    for (const char* part : {path_.c_str(), "make room on the disk"})
      TREADLE_EXPECTS(said.find(part) != said.npos, said);
    TREADLE_EXPECTS(kept > 5, "the disk has room for some");
    const auto count = [](StudyStorage& of) {
      return static_cast<std::int64_t>(of.results("study", 0).size());
    };
    TREADLE_EXPECTS(count(*storage) == kept, "what was kept is there");

    const bool larger =
        ::mount("none", folder_.path().c_str(), "tmpfs", MS_REMOUNT, "size=16m") == 0;
    TREADLE_EXPECTS(larger, "no mount");
    storage->claim("study", kept, "A", kLong);
    TREADLE_EXPECTS(storage->finish("study", kept, "A", 1), "the job that was not kept, is now");
    TREADLE_EXPECTS(count(*storage) == kept + 1, "all are there");
    TREADLE_EXPECTS(count(*make()) == kept + 1, "all are there for others");
  });

  const std::string error = process.join();
  if (error.find("no mount") != error.npos)
    GTEST_SKIP() << "this machine does not let the test mount a file system";
  EXPECT_EQ(error, "");
}

// The limit on the size of a file, as a quota acts, in the middle of a line.
CLAIM(LocalStorage, AWriteThatIsCutOffIsTakenBack) {
  make()->create("study", 1);
  ForkedProcess process([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const auto storage = make();
    storage->claim("study", 0, "A", kLong);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string said =
        error_of([&] { storage->finish("study", 0, "A", std::string(200'000, 'x')); });
    TREADLE_EXPECTS(said.starts_with(path_.string() + ": "), said);
  });
  EXPECT_EQ(process.join(), "");

  const auto storage = make();
  EXPECT_EQ(storage->results("study", 0).size(), 0U);
  EXPECT_TRUE(storage->finish("study", 0, "A", 7));
  EXPECT_EQ(make()->results("study", 0).size(), 1U);
}

CLAIM(LocalStorage, FoldersOfSeveralMachinesAreRefused) {
  for (const auto& [magic, name] :
       {std::pair(0x6969L, "NFS"), std::pair(0xFF534D42L, "CIFS"), std::pair(0xFE534D42L, "SMB"),
        std::pair(0x01021997L, "9p"), std::pair(0x65735546L, "FUSE (sshfs, for one)")}) {
    WrongSystem::file_system = magic;
    const std::string said = error_of([&] { make()->studies(); });
    WrongSystem::file_system = 0;

    EXPECT_EQ(said, path_.string() + ": lies on a file system that machines share, " + name +
                        ", where locks do not hold; choose a location on a local disk, or the "
                        "storage \"postgresql\", which is for several machines");
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
}

CLAIM(LocalStorage, AFolderThatIsMissingIsNamed) {
  const auto storage = GetParam().make(folder_.path() / "missing/studies", 1);

  EXPECT_EQ(error_of([&] { storage->studies(); }),
            (folder_.path() / "missing/studies").string() +
                ": cannot be opened: No such file or directory; make the folder, or choose another "
                "location");
}

// Somebody who froze in the middle of a call.
CLAIM(LocalStorage, WhoeverStopsWithTheLockIsWaitedForAWhile) {
  make()->create("study", 1);
  Bell has_it;
  ForkedProcess frozen([&] {
    const auto storage = make();
    storage->studies();
    has_it.ring();
    for (;;)  // it has the lock most of the time
      storage->claim("study", 0, "A", kLong);
  });
  has_it.await();
  // It is stopped with the lock sooner or later.
  std::string said = "none";
  for (int tries = 0; said == "none" && tries < 200; ++tries) {
    frozen.freeze();
    said = error_of([&] { make(0.4)->claim("study", 1, "B", kLong); });
    if (said == "none") {
      frozen.thaw();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it gets to another place
    }
  }
  EXPECT_EQ(said,
            path_.string() +
                ": another process has held the lock for 0.4 s; end it, or let it go on if it "
                "was stopped, and try again");

  const std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    frozen.thaw();
  });
  EXPECT_TRUE(make(30)->claim("study", 2, "B", kLong)) << "it went on in time";
}

CLAIM(LocalStorage, AFileThatIsReplacedIsNotWrittenTo) {
  const auto storage = make();
  storage->create("study", 1);
  std::filesystem::copy(path_, folder_.path() / "copy");
  std::filesystem::rename(folder_.path() / "copy", path_);

  const std::string said = error_of([&] { storage->claim("study", 0, "A", kLong); });

  EXPECT_EQ(said,
            path_.string() +
                ": was deleted or replaced while studies in it were worked on; put it back and "
                "go on, or start again");
}

CLAIM(LocalStorage, AStudyThatIsNotThereIsNamed) {
  EXPECT_EQ(error_of([&] { make()->claim("study", 0, "A", kLong); }),
            path_.string() +
                ": has no study \"study\": it was deleted while it was worked on; begin it anew");
}

// Leases hold for a process whose wall clock is an hour ahead, and for one that is behind.
CLAIM(LocalStorage, WallClocksDoNotMatter) {
  for (const long offset : {3600L, -3600L}) {
    std::filesystem::remove_all(path_);
    make()->create("study", 1);
    make()->claim("study", 0, "right", kLong);
    ForkedProcess wrong([&] {
      const auto right_now = std::chrono::system_clock::now();
      WrongSystem::wall_clock_offset = offset;
      TREADLE_EXPECTS(
          std::chrono::abs(std::chrono::system_clock::now() - right_now) > std::chrono::minutes(59),
          "this program includes wrong_system_calls.h");
      const auto storage = make();
      TREADLE_EXPECTS(!storage->claim("study", 0, "wrong", kLong), "the other's has not passed");
      TREADLE_EXPECTS(storage->claim("study", 1, "wrong", kLong), "nobody has it");
      TREADLE_EXPECTS(storage->claim("study", 2, "wrong", 0.01), "nobody has it");
    });
    EXPECT_EQ(wrong.join(), "") << offset;

    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(make()->claim("study", 1, "right", kLong)) << offset;
    EXPECT_TRUE(make()->claim("study", 2, "right", kLong)) << offset;
  }
}

}  // namespace treadle::testing
