#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>

namespace treadle {
namespace {

Batch targets_of_two_rows() {
  Batch batch;
  batch.targets = {at::zeros({2, 3}, at::kLong), at::ones({2, 3, 4})};
  batch.original_targets = {batch.targets[0], at::zeros({2, 3, 4})};
  batch.rows = at::zeros({2}, at::kLong);
  return batch;
}

const TargetSpec kTags = class_target("tags", {"a", "b"}, {3});
const TargetSpec kVectors{"vectors", TargetKind::kNumbers, {3, 4}};

TEST(TargetBatch, IsTheTransformedTargetForLossesAndTheOriginalForMetrics) {
  const Batch batch = targets_of_two_rows();

  EXPECT_EQ(TargetBatch::transformed(batch, 1, kVectors).values()[0][0][0].item<float>(), 1);
  EXPECT_EQ(TargetBatch::original(batch, 1, kVectors).values()[0][0][0].item<float>(), 0);
}

TEST(TargetBatch, CountsPositionsAndNotTheWidth) {
  const Batch batch = targets_of_two_rows();

  EXPECT_EQ(TargetBatch::transformed(batch, 0, kTags).positions(), 6);
  EXPECT_EQ(TargetBatch::transformed(batch, 1, kVectors).positions(), 6);
  EXPECT_FALSE(TargetBatch::transformed(batch, 1, kVectors).weights().defined());
}

TEST(TargetBatch, RowWeightsReachEveryPosition) {
  Batch batch = targets_of_two_rows();
  batch.weights = at::tensor({2.F, 3.F});

  const at::Tensor weights = TargetBatch::transformed(batch, 1, kVectors).weights();

  EXPECT_TRUE(at::equal(weights, at::tensor({2.F, 2.F, 2.F, 3.F, 3.F, 3.F}).view({2, 3})));
}

TEST(TargetBatch, WeightsOfRowsAndPositionsAreMultiplied) {
  Batch batch = targets_of_two_rows();
  batch.weights = at::tensor({2.F, 3.F});
  batch.position_weights = {at::tensor({1.F, 0.F, 0.F, 1.F, 1.F, 0.5F}).view({2, 3}), at::Tensor()};

  EXPECT_TRUE(at::equal(TargetBatch::transformed(batch, 0, kTags).weights(),
                        at::tensor({2.F, 0.F, 0.F, 3.F, 3.F, 1.5F}).view({2, 3})));
  EXPECT_EQ(TargetBatch::transformed(batch, 1, kVectors).weights().sum().item<float>(), 15);
}

TEST(TargetBatch, SlicesPositionsOfAllRows) {
  Batch batch = targets_of_two_rows();
  batch.targets[1] = at::arange(24, at::kFloat).view({2, 3, 4});
  batch.weights = at::tensor({2.F, 3.F});

  const TargetBatch part = TargetBatch::transformed(batch, 1, kVectors).slice_positions(2, 3);

  EXPECT_TRUE(at::equal(part.values(), at::arange(8, 20, at::kFloat).view({3, 4})));
  EXPECT_TRUE(at::equal(part.weights(), at::tensor({2.F, 3.F, 3.F})));
  EXPECT_EQ(part.positions(), 3);
  EXPECT_EQ(part.repeated(2).positions(), 6);
}

TEST(TargetBatch, RefusesATargetThatIsNotThere) {
  const Batch batch = targets_of_two_rows();

  EXPECT_THROW(TargetBatch::transformed(batch, 2, kTags), ContractViolation);
}

TEST(DataSpec, SurvivesStorage) {
  DataSpec spec;
  spec.inputs = {{"features", {2}, {{"a", {}, true}, {"b"}}},
                 {"text", {kVaries}, {}, Role::kTokens, at::kLong, 65},
                 {"text.lengths", {}, {}, Role::kLengths, at::kLong, 0, "text"}};
  spec.targets = {kTags, kVectors, {"soft", TargetKind::kDistribution, {2}, {"x", "y"}}};
  spec.targets[0].padded_like = "text";
  spec.has_weights = true;

  EXPECT_EQ(data_spec_from_json(to_json(spec)), spec);
}

TEST(DataSpec, FindsTargetsByNameOrListsThem) {
  DataSpec spec;
  spec.targets = {kTags, kVectors};

  EXPECT_EQ(spec.target_index("vectors"), 1U);
  try {
    static_cast<void>(spec.target_index("vector"));
    FAIL() << "it was found";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "the data has no target \"vector\"; it has tags, vectors");
  }
}

}  // namespace
}  // namespace treadle
