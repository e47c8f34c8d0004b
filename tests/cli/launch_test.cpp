// `launch`: a supervisor and the processes that it starts, as people use it. How groups end is
// tested in framework/host/launch, with processes that fail on purpose.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

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

/// Of the loopback: nobody listens at it now.
int unused_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(socket, any, size), 0);
  EXPECT_EQ(getsockname(socket, any, &size), 0);
  close(socket);
  return ntohs(address.sin_port);
}

class Launch : public CommandFixture {
 protected:
  Launch() {
    given_points();
    given_document(3);
  }
  void SetUp() override { skip_without("communicator", "gloo"); }
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

TEST_F(Launch, ShowsItsProcessesInEveryPlace) {
  given_document(3, {{"resources", {{"shards", 2}}}});

  const Finished done = run({"launch", "-n", "2", "points.json", "-o", "out"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("note: 2 processes train together: ranks 0-1 on "));
  EXPECT_THAT(done.out, HasSubstr("Processes: 2 on 1 host; rank 0 spent "));
  EXPECT_THAT(run({"runs", "list", "--dir", "out"}).out, HasSubstr("processes\n"));
  const json listed = run({"runs", "list", "--dir", "out", "--json"}).json().at("runs").at(0);
  EXPECT_EQ(listed.at("processes"), 2);
}

TEST_F(Launch, ChecksAHostWithoutACommand) {
  const Finished done = run({"launch", "--check", "-n", "1", "--json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.json().at("hosts").size(), 1U);
  EXPECT_EQ(done.json().at("ranks").size(), 1U);
  EXPECT_EQ(done.json().at("speed"), nullptr) << "one process exchanges nothing";
  EXPECT_EQ(done.json().at("problems"), json::array());
}

TEST_F(Launch, ChecksTheCommunicatorOfADocumentWithRealProcesses) {
  given_document(3, {{"resources", {{"shards", 2}, {"communicator", "gloo"}}}});

  const Finished done = run({"launch", "--check", "-n", "2", "--json", "run", "points.json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.json().at("communicator"), "gloo");
  EXPECT_EQ(done.json().at("ranks").size(), 2U);
  EXPECT_GT(done.json().at("speed").at("exchange_ms"), 0);
  EXPECT_FALSE(std::filesystem::exists(folder() / "runs")) << "something was trained";
}

TEST_F(Launch, ChecksHostsTogether) {
  const std::string at = "127.0.0.1:" + std::to_string(unused_port());
  const auto words = [&](const std::string& host) {
    return std::vector<std::string>{"launch", "--check", "--hosts", "2",  "--host",
                                    host,     "--at",    at,        "-n", "1"};
  };
  Running other = start(words("1"));

  const Finished done = run(words("0"));

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("ms from  to 0  to 1"), HasSubstr("exchange of 500 000"),
                              HasSubstr("2 processes on 2 hosts can train together")));
  const Finished followed = other.wait();
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_EQ(followed.out, "checked: host 0 prints the result\n");
}

TEST_F(Launch, ChecksWhatATrainingWouldRefuse) {
  given_document(3, {{"resources", {{"shards", 1}}}});

  const Finished done = run({"launch", "--check", "-n", "2", "points.json"});

  EXPECT_EQ(done.code, 6);
  EXPECT_THAT(done.out, AllOf(HasSubstr("bad: 2 processes cannot share a step of 1 shard"),
                              Not(HasSubstr("can train"))));
}

TEST_F(Launch, EndsACheckWithTheMessageOfItsProcesses) {
  const Finished done = run({"launch", "--check", "-n", "2", "missing.json"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("missing.json: no such file"));

  const Finished as_json = run({"launch", "--check", "-n", "1", "--json", "missing.json"});
  EXPECT_EQ(as_json.code, 3);
  EXPECT_EQ(as_json.json().at("error").at("kind"), "document");
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
