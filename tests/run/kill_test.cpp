// A run that is killed, not stopped: SIGKILL leaves no time to save anything.
#include <gtest/gtest.h>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include <treadle/base/random.h>

#include "workspace.h"

extern char** environ;

namespace treadle {
namespace {

using testing::bits_of;
using testing::Workspace;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr int kKills = 50;
constexpr std::uint64_t kKillsARun = 5;
constexpr std::chrono::minutes kPatience{5};

/// A command that is running. Killed, if need be, at the latest when this object goes.
class Process {
 public:
  explicit Process(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&id_, words[0].c_str(), nullptr, nullptr, arguments.data(), environ), 0);
  }
  ~Process() {
    if (!ended())
      kill_now();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool ended() {
    if (!ended_ && waitpid(id_, &status_, WNOHANG) == id_)
      ended_ = true;
    return ended_;
  }
  void kill_now() {
    kill(id_, SIGKILL);
    waitpid(id_, &status_, 0);
    ended_ = true;
  }
  /// -1 when it was killed.
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

  /// Until `condition` holds, the process has ended or the time is over.
  template <typename Condition>
  void wait(Clock::duration patience, Condition&& condition) {
    const auto until = Clock::now() + patience;
    while (!ended() && Clock::now() < until && !condition())
      std::this_thread::sleep_for(microseconds(200));
  }
  void wait(Clock::duration patience) {
    wait(patience, [] { return false; });
  }

 private:
  pid_t id_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

std::string runner() {
  return (testing::build_folder() / "bin" / "workflow-runner").string();
}

/// Many small steps, and checkpoints faster than a disk takes them.
fs::path write_document(const fs::path& folder) {
  nlohmann::json document = testing::moons();
  document["data"]["rows"] = 2400;
  document["training"]["epochs"] = 25;
  document["training"]["checkpoint"] = {{"every", "7st"}};
  document["training"].erase("early_stopping");
  document["training"]["restore_best_weights"] = nlohmann::json::object();
  const fs::path path = folder / "moons.json";
  std::ofstream(path) << document;
  return path;
}

/// One run, as its folder shows it while another process works on it.
class KilledRun {
 public:
  KilledRun(std::string document, fs::path output)
      : document_(std::move(document)), output_(std::move(output)) {}

  /// Starts it, or goes on with it.
  std::unique_ptr<Process> start() {
    if (!fs::exists(folder() / "workflow.json")) {
      fs::remove_all(output_);  // killed before there was anything to resume
      return std::make_unique<Process>(std::vector{runner(), std::string("run"), document_,
                                                   std::string("--quiet"), std::string("--output"),
                                                   output_.string()});
    }
    return std::make_unique<Process>(
        std::vector{runner(), std::string("resume"), folder().string(), std::string("--quiet")});
  }

  fs::path folder() const {
    std::error_code error;
    const fs::directory_iterator runs(output_, error);
    return runs == fs::directory_iterator() ? output_ / "none" : runs->path();
  }

  std::uintmax_t events_size() const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(folder() / "events.jsonl", error);
    return error ? 0 : size;
  }

  /// Whether a checkpoint has been begun and is not in place yet.
  bool is_saving() const {
    std::error_code error;
    for (const auto& training : fs::directory_iterator(folder() / "checkpoints", error)) {
      for (const auto& entry : fs::directory_iterator(training.path(), error)) {
        if (entry.path().extension() == ".tmp")
          return true;
      }
    }
    return false;
  }

 private:
  std::string document_;
  fs::path output_;
};

TEST(KilledRun, ResumesToTheSameBitsAtWhichever50InstantsItWasKilled) {
  const Workspace workspace;
  const std::string document = write_document(workspace.folder()).string();
  KilledRun whole(document, workspace.folder() / "whole");
  const auto begin = Clock::now();
  Clock::time_point training_begun{};
  const std::unique_ptr<Process> undisturbed = whole.start();
  undisturbed->wait(kPatience, [&] { return whole.events_size() > 0; });
  training_begun = Clock::now();
  undisturbed->wait(kPatience);
  ASSERT_EQ(undisturbed->exit_code(), 0);
  const auto starting = std::chrono::duration_cast<microseconds>(training_begun - begin);
  const auto training = std::chrono::duration_cast<microseconds>(Clock::now() - training_begun);
  const std::string expected = bits_of(whole.folder());

  RandomBits random(2026);
  const auto up_to = [&](microseconds longest) {
    return microseconds(random.below(static_cast<std::uint64_t>(longest.count()) + 1));
  };
  int kills = 0;
  int in_a_save = 0;
  for (int round = 0; kills < kKills; ++round) {
    ASSERT_LT(round, kKills) << "runs end before they are killed: the test tests nothing";
    KilledRun run(document, workspace.folder() / ("run-" + std::to_string(round)));
    std::unique_ptr<Process> process = run.start();
    for (std::uint64_t i = 0; i < kKillsARun && kills < kKills; ++i) {
      // One of five at any time from the start on, one while it saves, the others while it trains,
      // on average a fifth of it further each time.
      const std::uintmax_t before = run.events_size();
      if (i == 1) {
        process->wait(up_to(starting));
      } else {
        process->wait(kPatience, [&] { return run.events_size() > before; });
        process->wait(up_to(training * 2 / static_cast<int>(kKillsARun)));
      }
      if (i == 3) {
        process->wait(std::chrono::seconds(1), [&] { return run.is_saving(); });
        process->wait(up_to(microseconds(5000)));
      }
      if (process->ended())
        break;
      process->kill_now();
      ++kills;
      in_a_save += run.is_saving() ? 1 : 0;
      process = run.start();
    }
    process->wait(kPatience);
    ASSERT_EQ(process->exit_code(), 0) << "round " << round;
    EXPECT_EQ(bits_of(run.folder()), expected) << "round " << round;
    fs::remove_all(run.folder());
  }
  RecordProperty("kills_in_a_save", in_a_save);
  EXPECT_GE(in_a_save, kKills / 10);
}

}  // namespace
}  // namespace treadle
