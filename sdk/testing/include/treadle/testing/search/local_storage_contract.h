#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <treadle/search/study_storage.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// The guarantees of a StudyStorage in a file beside StorageContract, for the processes of one
/// machine: disks, locks and clocks that are not as they should be. Include in one source of a test
/// program, with wrong_system_calls.h:
///
///     INSTANTIATE_TEST_SUITE_P(Sqlite, LocalStorageContract, ::testing::Values(
///         LocalStorageCase{"Sqlite", [](const std::filesystem::path& path, double patience) { …
///         }}), CaseName());
namespace treadle::testing {

struct LocalStorageCase {
  std::string name;
  /// A new object of the storage in the file `path`, which need not exist. It waits for locks up to
  /// `patience` seconds.
  std::function<std::unique_ptr<StudyStorage>(const std::filesystem::path& path, double patience)>
      make;
};

TREADLE_CONTRACT_SUITE(LocalStorageContract, LocalStorageCase);

}  // namespace treadle::testing
