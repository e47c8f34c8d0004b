#include <treadle/host/catalog/plugin_probe.h>

#include <chrono>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "test/fake_library.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using namespace std::chrono_literals;

/// A helper that is a shell script: `$1` … are the files, descriptor 3 takes the answers. What the
/// true helper does with true plugins is shown in tests/villains.
class PluginProbeTest : public ::testing::Test {
 protected:
  PluginProbe given(const std::string& script, std::chrono::milliseconds limit = 5s) {
    const fs::path program = folder_.write("helper", "#!/bin/sh\n" + script);
    fs::permissions(program, fs::perms(0755));
    return PluginProbe({program, limit});
  }

  std::vector<fs::path> files_{"/p/one.so", "/p/two.so", "/p/three.so"};
  TemporaryFolder folder_;
};

/// Answers for every file but those named `bad`, in front of which it does `deed`.
std::string well_behaved_but(const std::string& bad, const std::string& deed) {
  return "i=0\nfor f in \"$@\"; do\n  echo \"{\\\"start\\\": $i}\" >&3\n  case $f in " + bad +
         ") " + deed +
         ";; esac\n  echo \"{\\\"done\\\": $i, \\\"problem\\\": \\\"\\\"}\" >&3\n"
         "  i=$((i+1))\ndone\n";
}

std::vector<std::string> problems(const std::vector<ProbeVerdict>& verdicts) {
  std::vector<std::string> texts;
  for (const ProbeVerdict& verdict : verdicts)
    texts.push_back(verdict.problem);
  return texts;
}

std::string failure(const PluginProbe& probe, const std::vector<fs::path>& files) {
  try {
    probe.try_each(files);
  } catch (const PluginError& error) {
    return error.what();
  }
  return "(no failure)";
}

TEST_F(PluginProbeTest, HasAVerdictForEachFile) {
  EXPECT_THAT(problems(given(well_behaved_but("none", ":")).try_each(files_)),
              ::testing::ElementsAre("", "", ""));
}

TEST_F(PluginProbeTest, FindsTheCulpritAndGoesOnWithTheOthers) {
  const auto verdicts =
      given(well_behaved_but("*two.so", "echo 'my last words'; kill -SEGV $$")).try_each(files_);

  EXPECT_THAT(
      problems(verdicts),
      ::testing::ElementsAre(
          "", "crashed while it was loaded (SIGSEGV); the last it printed: \"my last words\"", ""));
  EXPECT_TRUE(verdicts[1].alone);
}

TEST_F(PluginProbeTest, AcquitsWhoWorksAlone) {
  // Breaks only where another file came before it.
  const auto verdicts =
      given(well_behaved_but("*two.so", "[ $i -eq 0 ] || exit 7")).try_each(files_);

  EXPECT_THAT(problems(verdicts), ::testing::ElementsAre("", "", ""));
  EXPECT_TRUE(verdicts[1].alone);
}

TEST_F(PluginProbeTest, BelievesNoExitStatus) {
  EXPECT_THAT(
      problems(given(well_behaved_but("*one.so", "exit 0")).try_each(files_)),
      ::testing::ElementsAre("ended the process while it was loaded (exit code 0)", "", ""));
}

TEST_F(PluginProbeTest, WaitsNoLongerThanTheLimit) {
  const auto begin = std::chrono::steady_clock::now();

  EXPECT_THAT(problems(given(well_behaved_but("*one.so", "sleep 600"), 300ms).try_each(files_)),
              ::testing::ElementsAre("did not finish loading within 300 ms", "", ""));

  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST_F(PluginProbeTest, DoesNotWaitForWhatAPluginStarted) {
  const auto begin = std::chrono::steady_clock::now();

  // The grandchild keeps the channel and the output open.
  EXPECT_THAT(problems(given(well_behaved_but("*one.so", "sleep 600 & kill -SEGV $$"))
                           .try_each(std::vector<fs::path>{"/p/one.so"})),
              ::testing::ElementsAre("crashed while it was loaded (SIGSEGV)"));

  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST_F(PluginProbeTest, PassesOverWhatIsNoAnswer) {
  const std::string noise =
      "echo 'not JSON' >&3; echo '[1]' >&3; echo '{\"done\": 2}' >&3; echo '{\"start\": -1}' >&3; "
      "head -c 200000 /dev/zero >&3; echo >&3";
  EXPECT_THAT(problems(given(well_behaved_but("*two.so", noise)).try_each(files_)),
              ::testing::ElementsAre("", "", ""));
}

TEST_F(PluginProbeTest, KeepsOnlyTheEndOfAFlood) {
  const auto verdicts =
      given(well_behaved_but("*one.so",
                             "yes noise | head -c 5000000; echo; echo drowned; kill -ABRT $$"))
          .try_each(files_);

  EXPECT_EQ(verdicts[0].problem,
            "crashed while it was loaded (SIGABRT); the last it printed: \"drowned\"");
}

TEST_F(PluginProbeTest, TellsWhatOneDoesToTheOthers) {
  std::size_t culprit = 99;
  const std::string problem =
      given(well_behaved_but("*three.so", "kill -ABRT $$")).try_together(files_, culprit);

  EXPECT_EQ(problem, "crashed while it was loaded (SIGABRT)");
  EXPECT_EQ(culprit, 2u);
}

TEST_F(PluginProbeTest, SaysThatItsHelperIsMissing) {
  const PluginProbe probe({folder_.path() / "nobody", 1s});

  EXPECT_EQ(failure(probe, files_),
            (folder_.path() / "nobody").string() + " cannot be started: No such file or directory");
}

TEST_F(PluginProbeTest, SaysThatItsHelperMayNotRun) {
  const fs::path program = folder_.write("text", "no program");

  EXPECT_EQ(failure(PluginProbe({program, 1s}), files_),
            program.string() + " cannot be started: Permission denied");
}

TEST_F(PluginProbeTest, SaysThatItsHelperDiesBeforeTheFirstFile) {
  const PluginProbe probe =
      given("echo 'libtorch.so: cannot open shared object file' >&2\nexit 127");

  EXPECT_EQ(failure(probe, files_),
            (folder_.path() / "helper").string() +
                " does not work (exit code 127); this installation of Treadle is incomplete; the "
                "last it printed: \"libtorch.so: cannot open shared object file\"");
}

TEST_F(PluginProbeTest, AsksAboutTheHost) {
  const PluginProbe probe =
      given("[ \"$1\" = --host ] && echo '{\"host\": {\"blas\": \"X\"}}' >&3");

  EXPECT_EQ(probe.ask_about_host(), (nlohmann::json{{"blas", "X"}}));
}

}  // namespace
}  // namespace treadle
