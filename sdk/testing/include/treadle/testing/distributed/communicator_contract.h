#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <treadle/core/distributed/communicator.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// The guarantees of every Communicator. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Communicators, CommunicatorContract, ::testing::Values(
///         CommunicatorCase{"Gloo", [](const std::filesystem::path&) {
///           return plugin().make<Communicator>("gloo");
///         }}), CaseName());
///
/// The suite forks a process for each rank, stops and kills some. While it does, this process has
/// no communicator, and no threads that a fork could catch with a lock.
namespace treadle::testing {

struct CommunicatorCase {
  enum class Ranks {
    kProcesses,  ///< forked by the suite
    kThreads,    ///< of this process
    kLaunched    ///< processes of a launcher, which runs this program once for each rank
  };

  std::string name;
  /// A new object each time, for a rank of the group that meets in `folder`. The folder exists, is
  /// empty, and belongs to one group.
  std::function<std::unique_ptr<Communicator>(const std::filesystem::path& folder)> make;
  Ranks ranks = Ranks::kProcesses;
  /// Of claims about time: many times the duration of a call.
  std::chrono::milliseconds timeout{1000};
  /// A new `Rendezvous::address` for each group; without it, groups meet in their folders.
  std::function<std::string()> address = {};
  /// Errors have the rank of the process that is gone or silent.
  bool names_ranks = true;
  /// Without `own_address`, no port is open to other hosts.
  bool listens_on_loopback_alone = true;
  /// Ranks::kLaunched: those of this process. Claims with another number of ranks are skipped.
  std::int64_t launched_rank = 0;
  std::int64_t launched_ranks = 0;
};

TREADLE_CONTRACT_SUITE(CommunicatorContract, CommunicatorCase);

}  // namespace treadle::testing
