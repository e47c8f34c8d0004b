#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/history/run_observer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every RunObserver must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Observers, ObserverContract, ::testing::Values(
///         ObserverCase{"Listener", [](const std::filesystem::path& folder) {
///           return plugin().make<RunObserver>("listener", {{"path", folder / "heard.txt"}});
///         }, {"heard.txt"}}), CaseName());
namespace treadle::testing {

struct ObserverCase {
  std::string name;
  /// A new observer each time. If it writes, then into `folder`, which exists.
  std::function<std::unique_ptr<RunObserver>(const std::filesystem::path& folder)> make;
  /// The files that are in `folder` after a whole run, sorted.
  std::vector<std::string> leaves;
};

TREADLE_CONTRACT_SUITE(ObserverContract, ObserverCase);

}  // namespace treadle::testing
