#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/training/optimizer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every Optimizer must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerContract, ::testing::Values(
///         OptimizerCase{"Adam", [] { return plugin().make<Optimizer>("adam"); }}), CaseName());
namespace treadle::testing {

struct OptimizerCase {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
  /// A rate at which a quadratic shrinks within 200 steps.
  double learning_rate = 0.05;
  /// A gradient of zero moves parameters towards zero, because weights decay.
  bool decays_weights = false;
  /// The rule is a loop for the CPU without tensor operations (ParameterView::require_host()).
  bool is_for_cpu_only = false;
  /// How far float32 and float64 may be apart after 50 steps. Slots of 8 bits round otherwise, and
  /// a decomposition of a matrix that is all but singular depends on the last bits.
  double precision_distance = 1e-5;
};

TREADLE_CONTRACT_SUITE(OptimizerContract, OptimizerCase);

}  // namespace treadle::testing
