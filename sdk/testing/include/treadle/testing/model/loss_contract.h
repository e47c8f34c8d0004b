#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>

#include <treadle/core/training/loss.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>
#include <treadle/testing/support/targets.h>

/// What every Loss must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Losses, LossContract, ::testing::Values(
///         LossCase{"mse", [] { return plugin().make<Loss>("mse"); }, LossCase::numbers(2)}),
///         CaseName());
namespace treadle::testing {

struct LossCase {
  std::string name;
  std::function<std::unique_ptr<Loss>()> make;
  TargetSpec target;  ///< one the loss works on
  /// Outputs of 1000 are too much for it: it grows like an exponential.
  bool overflows = false;

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

/// A batch that has this target only.
Batch batch_of_target(const at::Tensor& targets);

/// What a step divides by: the weight that forward() gives, or else that of all positions.
double weight_of(const LossTerms& terms, const TargetBatch& target);

TREADLE_CONTRACT_SUITE(LossContract, LossCase);

}  // namespace treadle::testing
