#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <gtest/gtest.h>

#include <treadle/core/batch.h>
#include <treadle/core/row_reader.h>

/// What suites about rows of data say about batches.
namespace treadle::testing {

/// begin … end-1.
inline std::vector<std::int64_t> row_numbers(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

inline Batch gathered(const RowReader& reader, std::int64_t begin, std::int64_t end) {
  Batch batch;
  reader.gather(row_numbers(begin, end), batch);
  return batch;
}

/// With tensors of its own.
inline Batch copy_of(const Batch& batch) {
  const auto copy = [](const at::Tensor& t) { return t.defined() ? t.clone() : t; };
  Batch copied;
  for (const at::Tensor& input : batch.inputs)
    copied.inputs.push_back(copy(input));
  copied.targets = copy(batch.targets);
  copied.original_targets = copy(batch.original_targets);
  copied.weights = copy(batch.weights);
  copied.rows = copy(batch.rows);
  return copied;
}

/// As at::equal, but NaN equals itself, and so does no tensor at all.
inline bool same(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined())
    return false;
  return !a.defined() ||
         (a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
          at::equal(at::isnan(a), at::isnan(b)) && at::equal(a.nan_to_num(), b.nan_to_num()));
}

inline void expect_same(const Batch& got, const Batch& expected) {
  ASSERT_EQ(got.inputs.size(), expected.inputs.size());
  for (std::size_t i = 0; i < got.inputs.size(); ++i)
    EXPECT_TRUE(same(got.inputs[i], expected.inputs[i])) << "input " << i;
  EXPECT_TRUE(same(got.targets, expected.targets));
  EXPECT_TRUE(same(got.original_targets, expected.original_targets));
  EXPECT_TRUE(same(got.weights, expected.weights));
  EXPECT_TRUE(same(got.rows, expected.rows));
}

}  // namespace treadle::testing
