#include "launch/launched_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of(std::vector<std::string> words) {
  try {
    LaunchedCommand(std::move(words));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(LaunchedCommand, IsRunForADocumentAlone) {
  EXPECT_THAT(LaunchedCommand({"my.json", "-o", "out"}).words(),
              ElementsAre("run", "my.json", "-o", "out"));
  EXPECT_THAT(LaunchedCommand({"./run"}).words(), ElementsAre("run", "./run"));
}

TEST(LaunchedCommand, IsACommandThatTrains) {
  for (const char* command : {"run", "tune", "resume"})
    EXPECT_EQ(LaunchedCommand({command, "x"}).line().command->name, command);
  EXPECT_THAT(refusal_of({"check", "my.json"}),
              HasSubstr("launch starts run, tune or resume, not \"check\""));
  EXPECT_THAT(refusal_of({"plugins", "list"}), HasSubstr("not \"plugins\""));
}

// Before processes are started, which would all complain.
TEST(LaunchedCommand, IsCheckedLikeOthers) {
  EXPECT_THAT(refusal_of({"run", "my.json", "--ouptut", "x"}),
              HasSubstr("run has no option \"--ouptut\"; did you mean \"--output\"?"));
  EXPECT_THAT(refusal_of({"run", "a.json", "b.json"}),
              HasSubstr("with \"b.json\"; usage: workflow-runner run DOCUMENT"));
}

TEST(LaunchedCommand, ResumesWithTheOptionsThatResumeHas) {
  const LaunchedCommand command({"run", "my.json", "-o", "out", "--set", "seed=1", "--device",
                                 "cpu", "--plugin-dir", "a", "--plugin-dir=b", "-q"});

  EXPECT_THAT(command.words_to_resume("/runs/x"),
              ElementsAre("resume", "--device=cpu", "--plugin-dir=a", "--plugin-dir=b", "--quiet",
                          "--", "/runs/x"));
}

TEST(LaunchedCommand, ResumesByWordsThatParse) {
  const LaunchedCommand command({"tune", "--resume", "runs/a", "--json", "--trace", "t.json"});

  const std::vector<std::string> words = command.words_to_resume("/runs/-x");
  const CommandLine line = parse_command_line(words);
  EXPECT_EQ(line.command->name, "resume");
  EXPECT_THAT(line.arguments, ElementsAre("/runs/-x"));
  EXPECT_TRUE(line.has("json"));
  EXPECT_EQ(line.text("trace"), "t.json");
}

// Several processes read it, and each of them several times.
TEST(LaunchedCommand, KeepsADocumentThatComesThroughAPipe) {
  std::string folder = (fs::temp_directory_path() / "treadle-pipe-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string pipe = folder + "/my.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "{}"; });
  LaunchedCommand command({"run", pipe});
  command.keep_piped_documents();
  writer.join();

  EXPECT_NE(command.words()[1], pipe);
  for (int i = 0; i < 2; ++i) {
    std::ifstream file(command.words()[1]);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "{}");
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace treadle::cli
