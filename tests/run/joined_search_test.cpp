// A search of several processes: the same study as of one, whatever happens to any of them.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::read_file;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// The app as a process of its own.
class App {
 public:
  App(const std::vector<std::string>& words, const fs::path& output) {
    std::fflush(nullptr);  // else both write what is buffered
    process_ = fork();
    if (process_ != 0)
      return;
    const std::string file = output.string();
    if (freopen(file.c_str(), "a", stdout) == nullptr || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
      _exit(99);
    std::vector<char*> arguments;
    std::vector<std::string> all{std::getenv("TREADLE_RUNNER")};
    all.insert(all.end(), words.begin(), words.end());
    for (std::string& word : all)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(98);
  }
  ~App() {
    if (process_ > 0) {
      kill(SIGKILL);
      wait();
    }
  }
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  void kill(int signal) const { ::kill(process_, signal); }
  /// The exit code, or -1 after a signal.
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
};

Json shared_document(const std::string& storage, const fs::path& place) {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "shared", "seed": 11,
    "data": {"use": "moons", "rows": 96, "noise": 0.2},
    "model": {"use": "mlp", "hidden": [4], "dropout": 0.1},
    "optimizer": {"use": "sgd", "learning_rate": 0.01},
    "training": {"use": "standard", "epochs": 60, "batch_size": 8,
      "checkpoint": {"every": "20st"}},
    "validation": {"use": "hold_out", "fraction": 0.25},
    "search": {
      "trials": 14, "parallel": 4, "pruner": {"use": "asha", "reduction_factor": 2,
        "min_resource": 4},
      "space": {
        "model.hidden": {"choice": [[4], [16], [8, 8]]},
        "optimizer.learning_rate": {"log_uniform": [1e-3, 1]}
      }},
    "resources": {"workers": 1}})");
  if (!storage.empty()) {
    document["search"]["storage"] = {{"use", storage}, {"location", place.string()}};
    document["search"]["lease"] = "2s";
  }
  return document;
}

/// All that must be equal between equal searches; history.csv has the rows of one process alone.
std::string outcome_of(const fs::path& run) {
  const Json result = Json::parse(read_file(run / "result.json"));
  return result.at("search").dump() + read_file(run / "model.safetensors");
}

fs::path only_run_in(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    return entry.path();
  return {};
}

class JoinedSearches : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (std::getenv("TREADLE_RUNNER") == nullptr)
      GTEST_SKIP() << "TREADLE_RUNNER does not name the app";
    const Runtime runtime = watching_runtime();
    const Workspace alone;
    expected_ = outcome_of(
        run_workflow(runtime, runtime.resolve(shared_document("", "")), alone.options()).folder);
    place_ = workspace_.folder() / "study";
    std::ofstream(workspace_.folder() / "shared.json")
        << shared_document(GetParam(), place_).dump();
  }

  std::vector<std::string> begin() const {
    return {"tune", (workspace_.folder() / "shared.json").string(), "-o", runs().string(), "-q"};
  }
  std::vector<std::string> join() const {
    return {"tune", "--join", GetParam() + ":" + place_.string(), "--json"};
  }
  std::vector<std::string> go_on() const { return {"resume", only_run_in(runs()).string(), "-q"}; }
  fs::path runs() const { return workspace_.folder() / "runs"; }
  fs::path log() const { return workspace_.folder() / "log"; }
  /// Until others can join.
  void wait_for_study() const {
    for (int i = 0; i < 600; ++i) {
      const fs::path run = fs::exists(runs()) ? only_run_in(runs()) : fs::path();
      if (!run.empty() && fs::exists(run / "checkpoints/trials"))
        return;
      std::this_thread::sleep_for(50ms);
    }
  }

  const Workspace workspace_;
  std::string expected_;
  fs::path place_;
};

TEST_P(JoinedSearches, AreTheSearchOfOneProcess) {
  App first(begin(), log());
  wait_for_study();
  App second(join(), log());

  EXPECT_EQ(first.wait(), 0) << read_file(log());
  EXPECT_EQ(second.wait(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(only_run_in(runs())), expected_);
  const std::string told = read_file(log());
  EXPECT_THAT(told, HasSubstr("\"study\": \"shared\""));
  EXPECT_THAT(told, ::testing::Not(HasSubstr("\"jobs\": 0")));
}

TEST_P(JoinedSearches, LoseNothingWhenAProcessIsKilledOrFrozen) {
  std::mt19937 random(GetParam().size());
  const auto soon = [&] { return std::chrono::milliseconds(100 + random() % 1500); };
  App first(begin(), log());
  wait_for_study();
  {
    App killed(join(), log());
    std::this_thread::sleep_for(soon());
    killed.kill(SIGKILL);
    killed.wait();
  }
  App frozen(join(), log());
  std::this_thread::sleep_for(soon());
  frozen.kill(SIGSTOP);  // past its lease of two seconds
  std::this_thread::sleep_for(soon());
  first.kill(SIGKILL);
  first.wait();
  App again(go_on(), log());
  std::this_thread::sleep_for(4s);
  frozen.kill(SIGCONT);

  EXPECT_EQ(again.wait(), 0) << read_file(log());
  EXPECT_EQ(frozen.wait(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(only_run_in(runs())), expected_);
}

// A machine that cannot see the folder of the run trains a paused trial from its beginning.
TEST_P(JoinedSearches, NeedNoFolderInCommon) {
  App first(begin(), log());
  wait_for_study();
  const fs::path token = only_run_in(runs()) / "study.id";
  std::ofstream(token) << "another\n";
  App second(join(), log());

  EXPECT_EQ(first.wait(), 0) << read_file(log());
  EXPECT_EQ(second.wait(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(only_run_in(runs())), expected_);
}

TEST_P(JoinedSearches, AreRefusedForAnotherSearchOfTheSameName) {
  ASSERT_EQ(App(begin(), log()).wait(), 0) << read_file(log());
  Json other = shared_document(GetParam(), place_);
  other["search"]["space"]["optimizer.learning_rate"] = {{"log_uniform", {1e-3, 0.5}}};
  std::ofstream(workspace_.folder() / "shared.json") << other.dump();

  EXPECT_NE(App(begin(), log()).wait(), 0);

  EXPECT_THAT(read_file(log()), HasSubstr("another study called \"shared\""));
}

INSTANTIATE_TEST_SUITE_P(Storages, JoinedSearches, ::testing::Values("sqlite", "journal"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace treadle
