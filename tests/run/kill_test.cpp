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

pid_t start(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, words[0].c_str(), nullptr, nullptr, arguments.data(), environ);
  EXPECT_EQ(failed, 0);
  return child;
}

/// The exit status, or -1 when the process was killed after `patience`.
int wait_or_kill(pid_t child, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string runner() { return (testing::build_folder() / "bin" / "workflow-runner").string(); }

/// Several epochs of many small steps, checkpoints often: a few seconds of work.
fs::path write_document(const fs::path& folder) {
  nlohmann::json document = testing::moons();
  document["data"]["rows"] = 2400;
  document["training"]["epochs"] = 8;
  document["training"]["checkpoint"] = {{"every", "7st"}};
  document["training"].erase("early_stopping");
  document["training"]["keep_best"] = "loss";
  const fs::path path = folder / "moons.json";
  std::ofstream(path) << document;
  return path;
}

TEST(KilledRun, ResumesToTheSameBitsWheneverItWasKilled) {
  constexpr auto kLong = std::chrono::minutes(5);
  const Workspace workspace;
  const std::string document = write_document(workspace.folder()).string();
  const std::string whole = (workspace.folder() / "whole").string();
  ASSERT_EQ(wait_or_kill(start({runner(), "run", document, "--quiet", "--output", whole}), kLong), 0);
  const std::string expected = bits_of(fs::directory_iterator(whole)->path());

  RandomBits random(2026);
  int kills = 0;
  for (int round = 0; round < 6; ++round) {
    const std::string output = (workspace.folder() / ("run-" + std::to_string(round))).string();
    const auto delay = [&] { return std::chrono::milliseconds(600 + random.below(1500)); };
    int status = wait_or_kill(start({runner(), "run", document, "--quiet", "--output", output}), delay());
    while (!fs::exists(output) || fs::is_empty(output) ||
           !fs::exists(fs::directory_iterator(output)->path() / "workflow.json")) {
      // Killed before the run had a folder: there is nothing to resume.
      fs::remove_all(output);
      status = wait_or_kill(start({runner(), "run", document, "--quiet", "--output", output}), delay());
    }
    const std::string run = fs::directory_iterator(output)->path().string();
    for (int attempt = 0; status != 0 && attempt < 40; ++attempt) {
      kills += status == -1 ? 1 : 0;
      ASSERT_TRUE(status == -1) << "exit code " << status;
      const auto patience = attempt < 4 ? delay() : std::chrono::milliseconds(kLong);
      status = wait_or_kill(start({runner(), "resume", run, "--quiet"}), patience);
    }
    ASSERT_EQ(status, 0);
    EXPECT_EQ(bits_of(run), expected) << "round " << round;
  }
  EXPECT_GT(kills, 0) << "every run ended before it could be killed: the test tests nothing";
}

}  // namespace
}  // namespace treadle
