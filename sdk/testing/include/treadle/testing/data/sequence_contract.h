#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every SequenceProvider must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Sequences, SequenceContract, ::testing::Values(
///         SequenceCase{"Windows", [] {
///           return plugin().make<SequenceProvider>("windows", {{"lookback", 4}});
///         }}), CaseName());
namespace treadle::testing {

struct SequenceCase {
  std::string name;
  /// One that takes at most 12 rows for a sample.
  std::function<std::unique_ptr<SequenceProvider>()> make;
  /// Makes samples of rows without targets; one that reads past targets cannot.
  bool predicts = true;
  /// Joins series in one sample, with an input of segments that numbers them.
  bool joins_series = false;
  /// Its samples have columns of the rows to predict that are known in advance, as inputs behind
  /// the first: rows to predict on are there, then.
  bool knows_future = false;
  /// How long a series is, of which the suite has two.
  std::int64_t rows = 30;
};

/// Two series, one after the other: the columns "a" and "b", a number ("y") and one of two classes
/// ("kind") per row, weights, groups and times that rise within a group.
MatrixRows::Matrices series_data(std::int64_t rows_of_each = 30);

TREADLE_CONTRACT_SUITE(SequenceContract, SequenceCase);

}  // namespace treadle::testing
