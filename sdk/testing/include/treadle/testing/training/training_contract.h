#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/training/training_workflow.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every TrainingWorkflow must keep. The session is the one that trains in a run, with a tiny
/// model. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Training, TrainingContract, ::testing::Values(
///         TrainingCase{"Standard", [] { return plugin().make<TrainingWorkflow>("standard"); }}),
///         CaseName());
namespace treadle::testing {

struct TrainingCase {
  std::string name;
  /// A new object each time, of the same configuration.
  std::function<std::unique_ptr<TrainingWorkflow>()> make;
  /// Its training may be over before the planned epochs are.
  bool may_stop_early = false;
  /// How much of the loss of the untrained model is left at most after 20 epochs.
  double loss_falls_to = 0.5;
  /// The model that it trains, where that is its own: two inputs, one output. Empty: any model.
  std::function<std::shared_ptr<Model>()> make_model = {};
};

TREADLE_CONTRACT_SUITE(TrainingContract, TrainingCase);

}  // namespace treadle::testing
