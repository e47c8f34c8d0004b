#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/validation/metric_computer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>
#include <treadle/testing/support/targets.h>

/// What every MetricComputer must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Metrics, MetricContract, ::testing::Values(
///         MetricCase{"Accuracy", [] { return plugin().make<MetricComputer>("accuracy"); },
///                    MetricCase::classes(3)}), CaseName());
namespace treadle::testing {

struct MetricCase {
  std::string name;
  std::function<std::unique_ptr<MetricComputer>()> make;
  TargetSpec target;  ///< one the metric has a meaning for
  /// Relative; sums in another order differ by rounding.
  double tolerance = 1e-12;
  /// float32 predictions give the same up to this.
  double single_precision_tolerance = 1e-5;
  /// The order of rows matters, as with a metric of a series.
  bool depends_on_order = false;

  /// Further numbers of a prediction that the metric evaluates: "q0.1".
  std::vector<std::string> extras = {};

  // For one value a row, or one for each of the positions: {kVaries}, {2, 3}.
  using Positions = std::vector<std::int64_t>;
  static TargetSpec numbers(std::int64_t width, Positions positions = {}) {
    return number_target(width, std::move(positions));
  }
  static TargetSpec classes(std::int64_t count, Positions positions = {}) {
    return class_target(count, std::move(positions));
  }
  static TargetSpec labels(std::int64_t count, Positions positions = {}) {
    return label_target(count, std::move(positions));
  }
  static TargetSpec distribution(std::int64_t count, Positions positions = {}) {
    return distribution_target(count, std::move(positions));
  }
};

TREADLE_CONTRACT_SUITE(MetricContract, MetricCase);

}  // namespace treadle::testing
