#include <treadle/host/launch/group_folder.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include <gtest/gtest.h>

#include <treadle/testing/support/forked_process.h>

namespace treadle::launch {
namespace {

namespace fs = std::filesystem;

mode_t rights_of(const fs::path& path) {
  struct stat about {};
  stat(path.c_str(), &about);
  return about.st_mode & 0777;
}

TEST(GroupFolder, IsForItsUserAlone) {
  const GroupFolder folder;

  EXPECT_EQ(rights_of(folder.path()), 0700U);
  EXPECT_EQ(rights_of(GroupFolder::meeting_in(folder.path())), 0700U);
  EXPECT_TRUE(fs::is_empty(GroupFolder::meeting_in(folder.path())));
}

TEST(GroupFolder, HasANameOfItsOwn) {
  EXPECT_NE(GroupFolder().path(), GroupFolder().path());
}

TEST(GroupFolder, GoesWithTheObject) {
  fs::path path;
  {
    const GroupFolder folder;
    path = folder.path();
    GroupFolder::record_run(path, "runs/a");
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(GroupFolder, GoesWithTheNextOneWhereItsSupervisorWasKilled) {
  std::string own = (fs::temp_directory_path() / "treadle-own-XXXXXX").string();
  ASSERT_NE(mkdtemp(own.data()), nullptr);
  setenv("XDG_RUNTIME_DIR", own.c_str(), 1);
  fs::create_directories(own + "/treadle-launch-other");  // not one of ours: it has no lock
  {
    testing::ForkedProcess killed([] {
      const GroupFolder folder;
      pause();
    });
    while (std::distance(fs::directory_iterator(own), {}) < 2 ||
           std::none_of(fs::directory_iterator(own), {},
                        [](const auto& entry) { return fs::exists(entry.path() / "lock"); })) {
    }
    const GroupFolder beside;  // leaves it alone while it lives
    EXPECT_EQ(std::distance(fs::directory_iterator(own), {}), 3);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(own), {}), 2);

  const GroupFolder next;

  EXPECT_EQ(std::distance(fs::directory_iterator(own), {}), 2);
  EXPECT_TRUE(fs::exists(own + "/treadle-launch-other"));
  EXPECT_TRUE(fs::exists(next.path()));
  unsetenv("XDG_RUNTIME_DIR");
  fs::remove_all(own);
}

TEST(GroupFolder, HasTheRunThatRankZeroRecorded) {
  const GroupFolder folder;
  EXPECT_TRUE(folder.recorded_run().empty());

  GroupFolder::record_run(folder.path(), "runs/a b");

  EXPECT_EQ(folder.recorded_run(), fs::current_path() / "runs/a b");
}

// Others could read the token's group there, or put files in the place of ours.
TEST(GroupFolder, LeavesARuntimeFolderThatOthersMayEnter) {
  std::string open = (fs::temp_directory_path() / "treadle-open-XXXXXX").string();
  ASSERT_NE(mkdtemp(open.data()), nullptr);
  fs::permissions(open, fs::perms(0755));
  setenv("XDG_RUNTIME_DIR", open.c_str(), 1);
  {
    const GroupFolder folder;
    EXPECT_NE(folder.path().parent_path(), open);
  }
  fs::permissions(open, fs::perms(0700));
  {
    const GroupFolder folder;
    EXPECT_EQ(folder.path().parent_path(), open);
  }
  unsetenv("XDG_RUNTIME_DIR");
  fs::remove_all(open);
}

}  // namespace
}  // namespace treadle::launch
