#include <sys/wait.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/distributed/communicator_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

#include "mpi_process.h"

namespace treadle::mpi_group {
namespace {

using testing::CaseName;
using testing::CommunicatorCase;
using testing::CommunicatorContract;
using ::testing::HasSubstr;
using Milliseconds = std::chrono::milliseconds;

std::unique_ptr<Communicator> make() {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Communicator>("mpi");
}

std::int64_t number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoll(text);
}

Rendezvous launched(Milliseconds timeout = Milliseconds(60'000)) {
  return {.rank = number("OMPI_COMM_WORLD_RANK"),
          .world_size = number("OMPI_COMM_WORLD_SIZE"),
          .timeout = timeout};
}

/// This program, started by mpirun for each rank, with tests that it hides otherwise.
class UnderMpirun : public ::testing::Test {
 protected:
  struct Ended {
    int status;
    double seconds;
    std::string output;
  };

  void SetUp() override {
    if (!std::filesystem::exists(TREADLE_MPIEXEC))
      GTEST_SKIP() << "mpirun is not installed; scripts/setup --mpi installs it";
    if (!std::ifstream(TREADLE_MPIEXEC) ||
        std::system(TREADLE_MPIEXEC " --version | grep -qE 'Open ?(MPI|RTE)'") != 0)
      GTEST_SKIP() << "these tests start Open MPI's mpirun";
  }

  Ended run(int ranks, const std::string& filter) const {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path output = folder_.path() / "output.txt";
    const std::string command = "timeout 120 " TREADLE_MPIEXEC
                                " --allow-run-as-root --oversubscribe --mca plm_rsh_agent sh -n " +
                                std::to_string(ranks) + " '" + program.string() +
                                "' --gtest_also_run_disabled_tests --gtest_brief=1 "
                                "--gtest_filter='" +
                                filter + "' > " + output.string() + " 2>&1";
    const auto begin = std::chrono::steady_clock::now();
    const int status = std::system(command.c_str());
    std::ostringstream text;
    text << std::ifstream(output).rdbuf();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
            text.str()};
  }

  void expect_contract_of(int ranks) const {
    const Ended ended = run(ranks, "DISABLED_Launched/*");
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("PASSED"));
  }

  const testing::ScratchFolder folder_;
};

TEST_F(UnderMpirun, KeepsTheContract) {
  expect_contract_of(3);
}

TEST_F(UnderMpirun, KeepsTheContractWithTwoAndFourRanks) {
  expect_contract_of(2);
  expect_contract_of(4);
}

CommunicatorCase of_mpirun() {
  return {.name = "Mpirun",
          .make = [](const std::filesystem::path&) { return make(); },
          .ranks = CommunicatorCase::Ranks::kLaunched,
          .launched_rank = number("OMPI_COMM_WORLD_RANK"),
          .launched_ranks = number("OMPI_COMM_WORLD_SIZE")};
}

INSTANTIATE_TEST_SUITE_P(DISABLED_Launched, CommunicatorContract, ::testing::Values(of_mpirun()),
                         CaseName());

// Open MPI itself waits for such a process for ever.
TEST_F(UnderMpirun, AStoppedProcessEndsTheRunAtTheTimeout) {
  const Ended ended = run(3, "DISABLED_Rank.OneStops");

  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("error: rank 1 did not answer within 1 s"));
  EXPECT_LT(ended.seconds, 8);
}

TEST(DISABLED_Rank, OneStops) {
  const auto group = make();
  group->connect(launched(Milliseconds(1000)));
  std::byte byte{};
  group->broadcast(std::span(&byte, 1), 0);
  if (group->rank() == 1)
    ::raise(SIGSTOP);
  try {
    group->broadcast(std::span(&byte, 1), 1);
    FAIL() << "nobody sent";
  } catch (const CommunicationError& error) {
    FAIL() << "error: " << error.what();  // and the process ends as it would after any error
  }
}

TEST_F(UnderMpirun, AnAbortFailsTheCallsOfOthers) {
  const Ended ended = run(3, "DISABLED_Rank.OneAborts");

  EXPECT_THAT(ended.output, HasSubstr("error: rank 1 is gone (it has aborted the group)"));
  EXPECT_LT(ended.seconds, 8);
}

TEST(DISABLED_Rank, OneAborts) {
  const auto group = make();
  group->connect(launched());
  std::byte byte{};
  group->broadcast(std::span(&byte, 1), 0);
  if (group->rank() == 1) {
    group->abort();
    EXPECT_THROW(group->broadcast(std::span(&byte, 1), 1), CommunicationError);
    std::this_thread::sleep_for(Milliseconds(2000));  // the others end the run before
    return;
  }
  try {
    group->broadcast(std::span(&byte, 1), 1);
    FAIL() << "nobody sent";
  } catch (const CommunicationError& error) {
    FAIL() << "error: " << error.what();
  }
}

TEST_F(UnderMpirun, OtherRanksThanThoseOfMpiAreRefused) {
  const Ended ended = run(2, "DISABLED_Rank.CountsThree");

  EXPECT_THAT(ended.output, HasSubstr("MPI counts this process as rank 1 of 2, expected rank 1 "
                                      "of 3; start all processes with one mpirun"));
}

TEST(DISABLED_Rank, CountsThree) {
  Rendezvous three = launched();
  three.world_size = 3;
  try {
    make()->connect(three);
  } catch (const CommunicationError& error) {
    FAIL() << error.what();
  }
}

TEST_F(UnderMpirun, OtherSizesAreRefused) {
  const Ended ended = run(2, "DISABLED_Rank.SendsLess");

  EXPECT_THAT(ended.output, HasSubstr("error: rank 0 sent 3 bytes, expected 4"));
  EXPECT_LT(ended.seconds, 8);
}

TEST(DISABLED_Rank, SendsLess) {
  const auto group = make();
  group->connect(launched());
  std::vector<std::byte> bytes(group->rank() == 0 ? 3 : 4);
  try {
    group->broadcast(bytes, 0);
  } catch (const CommunicationError& error) {
    FAIL() << "error: " << error.what();
  }
}

// A process of its own: MPI is begun in it.
TEST(MpiProcess, WithoutALauncherThereIsNoGroup) {
  const auto group = make();
  EXPECT_EXIT(
      {
        try {
          group->connect({.rank = 1, .world_size = 2});
        } catch (const CommunicationError& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(8);
        }
      },
      ::testing::ExitedWithCode(8), "MPI counts this process as rank 0 of 1, expected rank 1 of 2");
}

TEST(MpiProcess, OneRankNeedsNoMpi) {
  const auto group = make();
  group->connect({});
  std::byte byte{7};
  std::byte copy{};
  group->all_gather(std::span(&byte, 1), std::span(&copy, 1));

  EXPECT_EQ(copy, byte);
  int has_begun = 1;
  MPI_Initialized(&has_begun);
  EXPECT_EQ(has_begun, 0);
}

TEST(MpiProcess, TheLauncherOfAnotherMpiIsRefused) {
  using Values = std::map<std::string, std::string>;
  const auto refusal = [](const std::string& library, const Values& values) -> std::string {
    try {
      expect_own_launcher(library, [&](const char* name) {
        const auto found = values.find(name);
        return found == values.end() ? std::nullopt : std::optional(found->second);
      });
    } catch (const CommunicationError& error) {
      return error.what();
    }
    return "";
  };

  EXPECT_THAT(refusal("Open MPI v4.1.4", {{"PMI_FD", "7"}}),
              HasSubstr("started by the launcher of MPICH, but the communicator mpi was built with "
                        "Open MPI v4.1.4; start it with the mpirun of that MPI"));
  EXPECT_THAT(refusal("MPICH Version: 4.0.2", {{"OMPI_COMM_WORLD_SIZE", "2"}}),
              HasSubstr("started by the launcher of Open MPI"));
  EXPECT_EQ(refusal("Open MPI v4.1.4", {{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMI_FD", "7"}}), "");
  EXPECT_EQ(refusal("MPICH Version: 4.0.2", {{"PMI_FD", "7"}}), "");
  EXPECT_EQ(refusal("Open MPI v4.1.4", {{"PMI_RANK", "0"}}), "") << "Slurm";
}

}  // namespace
}  // namespace treadle::mpi_group
