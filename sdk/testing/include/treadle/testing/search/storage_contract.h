#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <treadle/search/study_storage.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every StudyStorage must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Storages, StorageContract, ::testing::Values(
///         StorageCase{"Sqlite", [](const std::filesystem::path& folder) {
///           return plugin().make<StudyStorage>("sqlite", {{"location", folder / "studies.db"}});
///         }}), CaseName());
///
/// The suite forks processes, stops and kills them. While it does, this process has no object of a
/// storage, and no threads that a fork could catch with a lock.
namespace treadle::testing {

struct StorageCase {
  std::string name;
  /// A new object each time, of the one place that belongs to `folder`. The folder exists, and is
  /// empty before the first of them is used. Called in several processes.
  std::function<std::unique_ptr<StudyStorage>(const std::filesystem::path& folder)> make;
  /// The lease that claims about passing leases begin with: some times what a call takes.
  double lease = 0.25;
  /// Of the study whose workers are killed, and how long it may take, in seconds.
  std::int64_t jobs = 300;
  double patience = 60;
  /// The characters of the largest result that is kept.
  std::size_t large = 2'000'000;
};

TREADLE_CONTRACT_SUITE(StorageContract, StorageCase);

}  // namespace treadle::testing
