// Where answers go: full and closed outputs, devices, links, pipes; limits of the system; signals
// before the first step.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Outputs : public CommandFixture {
 protected:
  Outputs() {
    given_points();
    given_document(2);
  }

  /// Runs a shell script; $0 is workflow-runner.
  Finished run_script(const std::string& script) {
    return run_program({"sh", "-c", script, runner()});
  }
  /// A finished run in runs/.
  fs::path given_run() {
    EXPECT_EQ(run({"run", "points.json", "--quiet"}).code, 0);
    return only_run();
  }
};

TEST_F(Outputs, LostOnAFullStandardOutputAreAnError) {
  const std::string run = fs::relative(given_run(), folder()).string();
  for (const std::string& words :
       {std::string("--help"), std::string("--version"), std::string("schema"),
        std::string("plugins list"), std::string("check points.json --json"),
        std::string("graph points.json"), "evaluate " + run + " points.csv", "resume " + run,
        std::string("run points.json --json")}) {
    const Finished done = run_script("\"$0\" " + words + " > /dev/full");
    EXPECT_EQ(done.code, 7) << words;
    EXPECT_THAT(done.err, AllOf(StartsWith("workflow-runner: the standard output "),
                                HasSubstr("No space left on device")))
        << words;
  }
}

TEST_F(Outputs, LostAfterARunSayWhereItIsSaved) {
  const Finished done = run_script("\"$0\" run points.json --json > /dev/full");
  EXPECT_THAT(done.err, HasSubstr("saved in runs/" + only_run().filename().string()));
  EXPECT_TRUE(fs::exists(only_run() / "result.json"));
}

TEST_F(Outputs, ThatNobodyReadsToTheirEndAreNone) {
  EXPECT_EQ(run_script("\"$0\" run points.json | head -1 && ls runs/*/result.json").code, 0);
}

// Otherwise the run's first file would be standard output.
TEST_F(Outputs, ThatAreClosedTakeNothing) {
  const Finished done = run_script("\"$0\" run points.json >&- 2>&- <&-");
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(run({"resume", only_run().string(), "--quiet"}).code, 0);
  EXPECT_THAT(read(only_run() / "history.csv"), StartsWith("fit,"));
}

TEST_F(Outputs, OfPredictGoWhereTheyArePointed) {
  const std::string run = given_run().string();
  ASSERT_EQ(this->run({"predict", run, "points.csv", "-o", "plain.csv"}).code, 0);
  const std::string rows = read("plain.csv");
  fs::create_symlink("target.csv", folder() / "link.csv");
  ASSERT_EQ(mkfifo((folder() / "fifo").c_str(), 0600), 0);
  const auto predict_to = [&](const std::string& output) {
    return this->run({"predict", run, "points.csv", "-o", output});
  };

  const Finished to_dash = predict_to("-");
  EXPECT_EQ(to_dash.code, 0) << to_dash.err;
  EXPECT_EQ(to_dash.out, rows);
  EXPECT_FALSE(fs::exists(folder() / "-"));

  EXPECT_EQ(predict_to("/dev/stdout").out, rows);
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));

  EXPECT_EQ(predict_to("link.csv").code, 0);
  EXPECT_TRUE(fs::is_symlink(folder() / "link.csv"));
  EXPECT_EQ(read("target.csv"), rows);

  EXPECT_EQ(run_script("\"$0\" predict " + run + " points.csv -q -o fifo & cat fifo").out, rows);
  EXPECT_TRUE(fs::is_fifo(folder() / "fifo"));

  fs::create_symlink("/dev/full", folder() / "full");
  const Finished to_full = predict_to("full");
  EXPECT_EQ(to_full.code, 7);
  EXPECT_THAT(to_full.err, HasSubstr("full: cannot be written: No space left on device"));
  EXPECT_TRUE(fs::is_symlink(folder() / "full"));
}

TEST_F(Outputs, InTwoFormsAtOnceAreRefused) {
  EXPECT_EQ(run({"predict", "runs/x", "points.csv", "-o", "-", "--json"}).code, 2);
  EXPECT_EQ(run({"plugins", "lock", "-o", "/dev/stdout", "--json"}).code, 2);
}

TEST_F(Outputs, OfLockCanBeTheStandardOutput) {
  const Finished done = run({"plugins", "lock", "-o", "-"});
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.json().at("treadle_lock"), 1);
}

TEST_F(Outputs, OfTracesGoIntoPipesOnce) {
  ASSERT_EQ(mkfifo((folder() / "trace").c_str(), 0600), 0);
  const Finished done =
      run_script("\"$0\" run points.json --trace trace -q & cat trace; wait $!; exit $?");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(nlohmann::json::accept(done.out)) << done.out.substr(0, 200);
}

TEST_F(Outputs, LargerThanAllowedAreAnErrorThatSaysHowToGoOn) {
  given_document(4, {{"model", {{"use", "mlp"}, {"hidden", {256, 256}}}}});
  // dash counts in blocks of 512 bytes.
  const Finished done = run_script("ulimit -f 200; \"$0\" run points.json -q");
  EXPECT_EQ(done.code, 7);
  EXPECT_THAT(done.err, AllOf(HasSubstr("File too large"), HasSubstr("ulimit -f"),
                              HasSubstr("workflow-runner resume runs/points-")));
  EXPECT_EQ(run({"resume", only_run().string(), "--quiet"}).code, 0);
}

TEST_F(Outputs, LackOfFileHandlesIsNoMistakeOfOurs) {
  for (int handles = 4; handles < 9; ++handles) {
    const Finished done =
        run_script("ulimit -n " + std::to_string(handles) + "; \"$0\" run points.json -q");
    EXPECT_NE(done.code, 0) << handles;
    EXPECT_THAT(done.err, Not(HasSubstr("please report it"))) << handles;
    if (done.code != 127) {  // ld.so's own message
      EXPECT_THAT(done.err, HasSubstr("open files")) << handles << ": " << done.err;
    }
  }
}

TEST_F(Outputs, LackOfProcessesIsNoMistakeOfOurs) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "LeakSanitizer needs a process of its own";
#endif
  // Root has no such limit.
  std::string as_user = "exec ";
  if (geteuid() == 0) {
    as_user += "setpriv --reuid=54321 --regid=54321 --clear-groups ";
    fs::permissions(folder(), fs::perms::all);
  }
  if (run_script(as_user + "\"$0\" --version").code != 0)
    GTEST_SKIP() << "needs a program that another user can start, and setpriv";
  given_document(2, {{"resources", {{"workers", 4}}}});
  Finished done;
  int processes = 0;
  while (done.code != 0 && ++processes < 12) {
    done = run_script(as_user + "prlimit --nproc=" + std::to_string(processes) +
                      " \"$0\" run points.json -q");
    if (done.code != 0) {
      EXPECT_EQ(done.code, 7) << processes << ": " << done.err;
      EXPECT_THAT(done.err, AllOf(HasSubstr("ulimit -u"), Not(HasSubstr("please report it"))))
          << processes;
    }
  }
  EXPECT_GT(processes, 4);
}

TEST_F(Outputs, ASignalBeforeTheFirstStepEndsARunThatWaitsForItsData) {
  ASSERT_EQ(mkfifo((folder() / "slow.csv").c_str(), 0600), 0);
  Running waiting = start({"run", "points.json", "--set", "data.path=slow.csv"});
  // Opens once the run is reading; held open, it has nothing to read for ever.
  int writer = -1;
  for (int i = 0; i < 600 && writer < 0; ++i) {
    usleep(50'000);
    writer = open((folder() / "slow.csv").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ASSERT_GE(writer, 0);
  const auto begin = std::chrono::steady_clock::now();

  waiting.send(SIGTERM);
  const Finished done = waiting.wait();
  close(writer);

  EXPECT_EQ(done.code, 130);
  EXPECT_THAT(done.err, AllOf(HasSubstr("before the first step"),
                              HasSubstr("workflow-runner resume runs/points-")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace treadle
