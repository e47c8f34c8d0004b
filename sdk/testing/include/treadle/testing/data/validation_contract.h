#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/validation/cross_validator.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every CrossValidator must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Validation, ValidationContract, ::testing::Values(
///         ValidationCase{"KFold", [] { return plugin().make<CrossValidator>("k_fold"); }}),
///         CaseName());
namespace treadle::testing {

struct ValidationCase {
  std::string name;
  std::function<std::unique_ptr<CrossValidator>()> make;
  /// Each row that is not set aside for the test is judged in exactly one fold: it validates, or,
  /// where folds have test rows, tests.
  bool covers_every_row = true;
  /// No row is judged in two folds.
  bool judges_once = true;
  /// Another seed gives another plan.
  bool is_random = true;
  /// Works on number targets as well as on classes.
  bool takes_numbers = true;
  /// Each part of a fold has its share of each class, within a row; so have the test rows.
  bool stratifies = false;
  /// Rows of one group are never on both sides of a fold, nor in a fold and in the test.
  bool keeps_groups = false;
  /// Training is before validation in time, and the test after both.
  bool orders_by_time = false;
  /// It was asked for test rows.
  bool has_test_rows = false;
};

TREADLE_CONTRACT_SUITE(ValidationContract, ValidationCase);

}  // namespace treadle::testing
