#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sampler.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every Sampler must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Samplers, SamplerContract, ::testing::Values(
///         SamplerCase{"Shuffled", [] { return plugin().make<Sampler>("shuffled"); }}),
///         CaseName());
namespace treadle::testing {

struct SamplerCase {
  std::string name;
  std::function<std::unique_ptr<Sampler>()> make;
  /// Another seed gives another order.
  bool is_random = true;
  /// A pass has each row exactly once.
  bool each_row_once = true;
};

/// Rows that have all a sampler may go by: texts ("text") with lengths of 1 to 6, a table
/// ("features") of the columns "a" and "b", one class per row ("kind": "common", "usual", "rare"),
/// a number ("price"), weights, groups and times.
MatrixRows::Matrices sampler_data(std::int64_t rows);

/// A table of one column and a number: no lengths, classes, weights, groups or times.
MatrixRows::Matrices plain_data(std::int64_t rows);

TREADLE_CONTRACT_SUITE(SamplerContract, SamplerCase);

}  // namespace treadle::testing
