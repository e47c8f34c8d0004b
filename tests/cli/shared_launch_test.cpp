// Trainings of several processes, as people start them: the bits of one process, whatever happens
// to the processes.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class SharedLaunch : public CommandFixture {
 protected:
  void SetUp() override { skip_without("communicator", "gloo"); }

  SharedLaunch() {
    given_points();
    set("TMPDIR", folder());
  }

  void given_shards(int shards, int epochs, const json& training = json::object()) {
    json loop{{"use", "standard"}, {"epochs", epochs}, {"batch_size", 4}};
    loop.update(training);
    given_document(epochs, {{"model", {{"use", "mlp"}, {"hidden", {8}}, {"dropout", 0.1}}},
                            {"validation", {{"use", "hold_out"}, {"fraction", 0.3}}},
                            {"training", loop},
                            {"resources", {{"shards", shards}}}});
  }

  fs::path only_run_in(const std::string& output) const {
    return fs::directory_iterator(folder() / output)->path();
  }
  /// Weights, and history.csv without its last column, the seconds.
  std::string bits_in(const std::string& output) const {
    const fs::path run = only_run_in(output);
    std::string bits = read(run / "model.safetensors");
    std::istringstream history(read(run / "history.csv"));
    for (std::string line; std::getline(history, line);)
      bits += line.substr(0, line.rfind(',')) + "\n";
    return bits;
  }

  /// Whether the run in that output folder has written so many rows of history, within a minute.
  bool has_rows(const std::string& output, std::size_t rows) const {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (Clock::now() < deadline) {
      std::error_code none_yet;
      const fs::directory_iterator runs(folder() / output, none_yet);
      if (runs != fs::directory_iterator()) {
        const std::string history = read(runs->path() / "history.csv");
        if (static_cast<std::size_t>(std::count(history.begin(), history.end(), '\n')) > rows)
          return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  /// Sends a signal to the process of that rank in a launch; false: none lives.
  static bool sends(const Running& launch, int rank, int signal) {
    const std::string id = std::to_string(launch.process());
    const std::string variable = "TREADLE_RANK=" + std::to_string(rank);
    std::ifstream children("/proc/" + id + "/task/" + id + "/children");
    for (pid_t child = 0; children >> child;) {
      std::ifstream environment("/proc/" + std::to_string(child) + "/environ", std::ios::binary);
      for (std::string one; std::getline(environment, one, '\0');) {
        if (one == variable)
          return kill(child, signal) == 0;
      }
    }
    return false;
  }
};

TEST_F(SharedLaunch, OfTwoProcessesMakesTheRunOfOne) {
  given_shards(2, 4);
  ASSERT_EQ(run({"run", "points.json", "--quiet", "-o", "alone"}).code, 0);

  const Finished done = run({"launch", "-n", "2", "run", "points.json", "-o", "together"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("Report  together/points-"));
  EXPECT_EQ(bits_in("together"), bits_in("alone"));
}

TEST_F(SharedLaunch, NeedsAShardForEachProcess) {
  given_shards(1, 3);

  const Finished done = run({"launch", "-n", "2", "points.json"});

  EXPECT_EQ(done.code, 6);
  EXPECT_THAT(done.err,
              AllOf(HasSubstr("2 processes cannot share a step of 1 shard"),
                    HasSubstr("set resources.shards to 2 or more"), Not(HasSubstr("restart"))));
}

TEST_F(SharedLaunch, OfWhichAProcessIsKilledMakesTheRunOfOne) {
  given_shards(2, 120, {{"checkpoint", {{"every", "50st"}}}});
  ASSERT_EQ(run({"run", "points.json", "--quiet", "-o", "alone"}).code, 0);
  Running launch = start({"launch", "-n", "2", "run", "points.json", "--quiet", "-o", "together"});
  ASSERT_TRUE(has_rows("together", 5));

  ASSERT_TRUE(sends(launch, 1, SIGKILL));
  const Finished done = launch.wait();

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, AllOf(HasSubstr("rank 1 (pid "), HasSubstr("was killed by SIGKILL"),
                              HasSubstr("restart 1 of 3, with 2 processes, from the last "
                                        "checkpoint of ")));
  EXPECT_EQ(bits_in("together"), bits_in("alone"));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder()))
    EXPECT_THAT(entry.path().filename().string(), Not(testing::StartsWith("treadle-")))
        << "left behind";
}

TEST_F(SharedLaunch, OfWhichOneProcessIsStoppedStopsAtOneStepAndGoesOn) {
  given_shards(2, 120);
  ASSERT_EQ(run({"run", "points.json", "--quiet", "-o", "alone"}).code, 0);
  Running launch = start({"launch", "-n", "2", "run", "points.json", "--quiet", "-o", "together"});
  ASSERT_TRUE(has_rows("together", 5));

  ASSERT_TRUE(sends(launch, 1, SIGTERM));
  const Finished stopped = launch.wait();

  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("workflow-runner resume together/points-"),
                                 Not(HasSubstr("restart"))));
  const Finished done = run({"launch", "-n", "2", "resume", "--quiet", only_run_in("together")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(bits_in("together"), bits_in("alone"));
}

// For a moment in which others wait for it, no longer than the time-out.
TEST_F(SharedLaunch, OfWhichAProcessPausesMakesTheRunOfOne) {
  given_shards(2, 120);
  ASSERT_EQ(run({"run", "points.json", "--quiet", "-o", "alone"}).code, 0);
  Running launch = start({"launch", "-n", "2", "run", "points.json", "--quiet", "-o", "together"});
  ASSERT_TRUE(has_rows("together", 5));

  ASSERT_TRUE(sends(launch, 0, SIGSTOP));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ASSERT_TRUE(sends(launch, 0, SIGCONT));
  const Finished done = launch.wait();

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(bits_in("together"), bits_in("alone"));
}

}  // namespace
}  // namespace treadle
