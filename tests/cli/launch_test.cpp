// `launch`: a supervisor and the processes that it starts, as people use it. How groups end is
// tested in framework/host/launch, with processes that fail on purpose.
#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Launch : public CommandFixture {
 protected:
  Launch() {
    given_points();
    given_document(3);
  }
};

TEST_F(Launch, OfOneProcessTrainsAsRunDoes) {
  const Finished done = run({"launch", "--processes", "1", "run", "points.json", "-o", "out"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("Report  out/points-"));
  EXPECT_THAT(done.err, IsEmpty());
}

TEST_F(Launch, TakesADocumentForRun) {
  EXPECT_EQ(run({"launch", "-n", "1", "points.json", "--quiet"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(only_run() / "result.json"));
}

TEST_F(Launch, LeavesJsonToTheCommand) {
  const Finished done = run({"launch", "-n", "1", "run", "points.json", "--json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(done.json().contains("result"));
}

TEST_F(Launch, EndsWithTheMessageAndTheCodeOfItsCommand) {
  given_document(3, {{"lost", "hinge"}});

  const Finished done = run({"launch", "-n", "1", "points.json"});

  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, AllOf(HasSubstr("/lost: unknown key"), Not(HasSubstr("rank"))));
}

TEST_F(Launch, RefusesAMistakeBeforeItStartsAnything) {
  const Finished done = run({"launch", "-n", "3", "run", "points.json", "--ouptut", "x"});

  EXPECT_EQ(done.code, 2);
  EXPECT_EQ(done.err,
            "workflow-runner: run has no option \"--ouptut\"; did you mean \"--output\"?\n");
}

TEST_F(Launch, StopsLikeItsCommand) {
  given_document(1'000'000);
  Running running = start({"launch", "-n", "1", "points.json"});
  ASSERT_TRUE(running.has_printed("1/1000000"));

  running.send(SIGUSR1);
  const Finished done = running.wait();

  EXPECT_EQ(done.code, 130);
  EXPECT_THAT(done.err, HasSubstr("workflow-runner resume runs/points-"));
}

TEST_F(Launch, ChecksAHostWithoutACommand) {
  const Finished done = run({"launch", "--check", "-n", "1", "--json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.json().at("hosts").size(), 1U);
  EXPECT_EQ(done.json().at("problems"), json::array());
}

TEST_F(Launch, NamesTheOptionThatSeveralHostsLack) {
  EXPECT_THAT(run({"launch", "-n", "1", "--hosts", "2", "points.json"}).err,
              HasSubstr("--hosts needs --host NUMBER, from 0, and --at HOST:PORT"));
  EXPECT_THAT(run({"launch", "-n", "1", "--host", "1", "points.json"}).err,
              HasSubstr("add --hosts COUNT"));
  EXPECT_THAT(run({"launch", "-n", "1", "--timeout", "5ep", "points.json"}).err,
              HasSubstr("--timeout: expected a time from 0.1s to 7d such as 30s or 5min"));
}

/// Of `folds` folds.
class LaunchOfFolds : public Launch {
 protected:
  void given_folds(int folds, int epochs) {
    given_document(epochs, {{"validation", {{"use", "k_fold"}, {"folds", folds}, {"refit", true}}},
                            {"resources", {{"workers", 1}}}});
  }
  fs::path run_in(const std::string& output) const {
    return *fs::directory_iterator(folder() / output);
  }
  /// Its weights, and its history without seconds.
  std::string bits_of(const fs::path& run) const {
    std::string bits = read(run / "model.safetensors");
    std::istringstream history(read(run / "history.csv"));
    for (std::string line; std::getline(history, line);)
      bits += line.substr(0, line.rfind(',')) + "\n";
    return bits;
  }
  std::vector<std::string> events_of(const fs::path& run, const std::string& kind) const {
    std::vector<std::string> fits;
    std::istringstream events(read(run / "events.jsonl"));
    for (std::string line; std::getline(events, line);) {
      const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (event.is_object() && event.at("event") == kind)
        fits.push_back(event.at("fit").get<std::string>());
    }
    return fits;
  }
};

TEST_F(LaunchOfFolds, DividesThemToTheBitsOfOneProcess) {
  given_folds(3, 3);

  const Finished done = run({"launch", "-n", "2", "points.json", "-o", "two"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(run({"run", "points.json", "-o", "one", "--quiet"}).code, 0);

  EXPECT_THAT(done.out, HasSubstr("2 processes share 3 folds"));
  EXPECT_EQ(bits_of(run_in("two")), bits_of(run_in("one")));
}

TEST_F(LaunchOfFolds, TrainsNoFinishedOneAgainWhenAProcessIsKilled) {
  constexpr int kEpochs = 800;
  given_folds(5, kEpochs);
  EXPECT_EQ(run({"run", "points.json", "-o", "one", "--quiet"}).code, 0);

  Running running = start({"launch", "-n", "2", "points.json", "-o", "two"});
  ASSERT_TRUE(running.has_printed("fold-1: 800 epochs"));
  const std::string process = std::to_string(running.process());
  std::istringstream children(read(fs::path("/proc") / process / "task" / process / "children"));
  std::vector<pid_t> ranks{std::istream_iterator<pid_t>(children), {}};
  ASSERT_EQ(ranks.size(), 2U);
  const std::vector<std::string> before = events_of(run_in("two"), "fit_completed");
  kill(ranks[1], SIGKILL);
  const Finished done = running.wait();

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("restart 1 of 3"));
  const std::vector<std::string> completed = events_of(run_in("two"), "fit_completed");
  EXPECT_THAT(completed, testing::UnorderedElementsAre("fold-1", "fold-2", "fold-3", "fold-4",
                                                       "fold-5", "final"));
  EXPECT_THAT(before, testing::Contains("fold-1"));
  EXPECT_EQ(bits_of(run_in("two")), bits_of(run_in("one")));
}

}  // namespace
}  // namespace treadle
