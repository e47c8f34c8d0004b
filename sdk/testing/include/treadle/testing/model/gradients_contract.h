#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/training/gradient_strategy.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every GradientStrategy must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Strategies, GradientStrategyContract, ::testing::Values(
///         GradientsCase{"Backprop", [] { return plugin().make<GradientStrategy>("backprop"); }}),
///         CaseName());
namespace treadle::testing {

struct GradientsCase {
  std::string name;
  std::function<std::unique_ptr<GradientStrategy>()> make;
  /// The gradients are those of back-propagation over the whole batch, but for rounding, where the
  /// model looks at each row by itself and remembers none. False for a strategy that gives others.
  bool exact = true;
};

TREADLE_CONTRACT_SUITE(GradientStrategyContract, GradientsCase);

}  // namespace treadle::testing
