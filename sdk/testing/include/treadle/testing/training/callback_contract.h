#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/training/training_callback.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every TrainingCallback must keep. It takes part in trainings of a tiny model by the session
/// of a run. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Callbacks, CallbackContract, ::testing::Values(
///         CallbackCase{"EarlyStopping", [] {
///           return plugin().make<TrainingCallback>("early_stopping", {{"patience", "2ep"}});
///         }}), CaseName());
namespace treadle::testing {

struct CallbackCase {
  std::string name;
  /// A new object each time, of the same configuration: one that does something in ten epochs of
  /// three steps.
  std::function<std::unique_ptr<TrainingCallback>()> make;
  /// It refuses a training without validation rows.
  bool needs_validation = false;
};

TREADLE_CONTRACT_SUITE(CallbackContract, CallbackCase);

}  // namespace treadle::testing
