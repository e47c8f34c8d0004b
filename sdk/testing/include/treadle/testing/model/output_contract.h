#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/validation/output_stage.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>
#include <treadle/testing/support/targets.h>

/// The contract of every OutputStage. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Outputs, OutputContract, ::testing::Values(
///         OutputCase{"Temperature", [] { return plugin().make<OutputStage>("temperature"); },
///                    class_target(3)}), CaseName());
namespace treadle::testing {

struct OutputCase {
  std::string name;
  std::function<std::unique_ptr<OutputStage>()> make;
  TargetSpec target;  ///< one the stage has a meaning for
  /// Levels of quantiles that predictions have.
  std::vector<double> quantiles = {};
};

TREADLE_CONTRACT_SUITE(OutputContract, OutputCase);

}  // namespace treadle::testing
