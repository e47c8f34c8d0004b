#include <treadle/testing/support/batches.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <gtest/gtest.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/row_reader.h>
#include <cstdint>
#include <numeric>
#include <vector>

namespace treadle::testing {

std::vector<std::int64_t> row_numbers(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

Batch gathered(const RowReader& reader, std::int64_t begin, std::int64_t end) {
  Batch batch;
  reader.gather(row_numbers(begin, end), batch);
  return batch;
}

Batch copy_of(const Batch& batch) {
  const auto copy = [](const at::Tensor& t) { return t.defined() ? t.clone() : t; };
  const auto copies = [&](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> copied;
    for (const at::Tensor& tensor : tensors)
      copied.push_back(copy(tensor));
    return copied;
  };
  Batch copied;
  copied.inputs = copies(batch.inputs);
  copied.targets = copies(batch.targets);
  copied.original_targets = copies(batch.original_targets);
  copied.position_weights = copies(batch.position_weights);
  copied.weights = copy(batch.weights);
  copied.rows = copy(batch.rows);
  copied.groups = copy(batch.groups);
  return copied;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined())
    return false;
  return !a.defined() ||
         (a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
          at::equal(at::isnan(a), at::isnan(b)) && at::equal(a.nan_to_num(), b.nan_to_num()));
}

void expect_same(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected,
                 const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(same(got[i], expected[i])) << what << ' ' << i;
}

void expect_same(const Batch& got, const Batch& expected) {
  expect_same(got.inputs, expected.inputs, "input");
  expect_same(got.targets, expected.targets, "target");
  expect_same(got.original_targets, expected.original_targets, "original target");
  expect_same(got.position_weights, expected.position_weights, "position weights");
  EXPECT_TRUE(same(got.weights, expected.weights)) << "weights";
  EXPECT_TRUE(same(got.rows, expected.rows)) << "rows";
  EXPECT_TRUE(same(got.groups, expected.groups)) << "groups";
}

at::Tensor trimmed(const at::Tensor& padded, at::IntArrayRef sizes) {
  at::Tensor part = padded;
  for (std::int64_t d = 1; d < padded.dim(); ++d)
    part = part.slice(d, 0, sizes[static_cast<std::size_t>(d)]);
  return part;
}

}  // namespace treadle::testing
