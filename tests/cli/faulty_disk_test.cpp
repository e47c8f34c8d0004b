// Disks that are full and folders that cannot be written, made for real: a small tmpfs in a mount
// namespace, and a user without privileges.
#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class FaultyDisk : public CommandFixture {
 protected:
  FaultyDisk() {
    given_points();
    // Some 0.8 MB a checkpoint: weights and the two moments of adamw.
    given_document(6, {{"model", {{"use", "mlp"}, {"hidden", {256, 256}}}},
                       {"training",
                        {{"use", "standard"},
                         {"epochs", 6},
                         {"batch_size", 4},
                         {"checkpoint", {{"every", "1ep"}}}}},
                       {"resources", {{"shards", 2}}}});
  }

  /// Runs a shell script in a mount namespace of its own; skips where the system does not let us
  /// make one.
  Finished run_with_mounts(const std::string& script) {
    std::vector<std::string> words{"unshare", "--mount"};
    if (geteuid() != 0)
      words.push_back("--map-root-user");
    words.insert(words.end(), {"--", "sh", "-c"});
    std::vector<std::string> probe = words;
    probe.push_back("mkdir -p disk && mount -t tmpfs -o size=1m none disk");
    can_mount_ = run_program(probe).code == 0;
    if (!can_mount_)
      return {};
    words.push_back(script);
    words.push_back(runner());  // $0
    return run_program(words);
  }

  bool can_mount_ = false;
};

TEST_F(FaultyDisk, ACheckpointThatFindsNoRoomEndsTheRunAndResumingGoesOnFromTheLastGoodOne) {
  ASSERT_EQ(run({"run", "points.json", "--quiet", "-o", "whole"}).code, 0);
  const fs::path whole = fs::directory_iterator(folder() / "whole")->path();

  const Finished done = run_with_mounts(R"(
    mount -t tmpfs -o size=1500k none disk
    "$0" run points.json --quiet -o disk 2> full.txt
    echo $? > full.code
    cd disk/* && rm -rf ../../kept && mkdir ../../kept && cp -r checkpoints history.csv ../../kept && cd ../..
    mount -o remount,size=64m disk
    "$0" resume disk/* --quiet && cp -r disk/* resumed
  )");

  if (!can_mount_)
    GTEST_SKIP() << "this machine does not let the test mount a file system";
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(read("full.code"), "7\n");
  const std::string message = read("full.txt");
  EXPECT_THAT(message,
              AllOf(StartsWith("workflow-runner: disk/points-"),
                    HasSubstr("No space left on device"), HasSubstr("the last good checkpoint is "),
                    HasSubstr("when this is mended: workflow-runner resume disk/points-")));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  EXPECT_FALSE(fs::is_empty(folder() / "kept/checkpoints/final"));
  EXPECT_EQ(read("resumed/model.safetensors"), read(whole / "model.safetensors"));
}

// The others have disks of their own, and room.
TEST_F(FaultyDisk, OfTheFirstOfTwoProcessesEndsBothAndTwoGoOnFromTheLastGoodCheckpoint) {
  ASSERT_EQ(run({"run", "points.json", "--quiet", "-o", "whole"}).code, 0);
  const fs::path whole = fs::directory_iterator(folder() / "whole")->path();

  const Finished done = run_with_mounts(R"(
    mount -t tmpfs -o size=1500k none disk
    "$0" launch -n 2 run points.json --quiet -o disk 2> full.txt
    echo $? > full.code
    mount -o remount,size=64m disk
    "$0" launch -n 2 resume disk/* --quiet && cp -r disk/* resumed
  )");

  if (!can_mount_)
    GTEST_SKIP() << "this machine does not let the test mount a file system";
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(read("full.code"), "7\n");
  EXPECT_THAT(read("full.txt"), AllOf(HasSubstr("No space left on device"),
                                      Not(HasSubstr("restart")), Not(HasSubstr("rank 1"))));
  EXPECT_EQ(read("resumed/model.safetensors"), read(whole / "model.safetensors"));
}

class LockedFolder : public CommandFixture {
 protected:
  LockedFolder() {
    given_points();
    given_document(2);
    fs::create_directories(folder() / "locked");
    fs::permissions(folder() / "locked", fs::perms::owner_read | fs::perms::owner_exec |
                                             fs::perms::others_read | fs::perms::others_exec);
    fs::permissions(folder(), fs::perms::others_read | fs::perms::others_exec,
                    fs::perm_options::add);
  }

  /// Runs `workflow-runner` as somebody who may read everything and write nothing here.
  Finished run_unprivileged(const std::vector<std::string>& words) {
    std::vector<std::string> all;
    if (geteuid() == 0) {
      all = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
             // The build may lie in a folder that is root's alone.
             "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search", "--"};
    }
    all.push_back(runner());
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all);
  }
};

TEST_F(LockedFolder, ARunFolderThatIsNotWritableIsOneSentenceWithTheRemedy) {
  const Finished failed = run_unprivileged({"run", "points.json", "-o", "locked", "--quiet"});

  EXPECT_EQ(failed.code, 7);
  EXPECT_THAT(failed.err,
              testing::MatchesRegex(
                  "workflow-runner: locked/points-[-0-9]+: the run's folder cannot be made: "
                  "Permission denied; choose another place with --output\n"));
}

TEST_F(LockedFolder, ARunThatBecameReadOnlyIsRefusedAndKept) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);
  const fs::path finished = only_run();
  fs::remove(finished / "result.json");
  fs::permissions(finished, fs::perms::owner_write, fs::perm_options::remove);
  fs::permissions(finished / ".lock", fs::perms::owner_write, fs::perm_options::remove);
  const std::string weights = read(finished / "model.safetensors");

  const Finished failed = run_unprivileged({"resume", finished.string(), "--quiet"});

  EXPECT_EQ(failed.code, 7);
  EXPECT_EQ(failed.err,
            "workflow-runner: " + finished.string() +
                ": not writable: Permission denied; make the folder writable, or copy the run to "
                "another place\n");
  EXPECT_EQ(read(finished / "model.safetensors"), weights);
  fs::permissions(finished, fs::perms::owner_write, fs::perm_options::add);
}

}  // namespace
}  // namespace treadle
