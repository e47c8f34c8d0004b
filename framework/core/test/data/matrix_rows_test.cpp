#include <treadle/core/data/matrix_rows.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using ::testing::HasSubstr;

// Ten rows of three numbers: row r holds 3r, 3r+1, 3r+2; its class is r mod 2, its weight r.
MatrixRows::Matrices ten_rows(at::ScalarType dtype = at::kFloat) {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {3}, {{"a", {}}, {"b", {}}, {"c", {}}}}};
  matrices.spec.targets = {class_target("kind", {"even", "odd"})};
  matrices.spec.has_weights = true;
  matrices.inputs = {at::arange(30, at::TensorOptions(dtype)).view({10, 3})};
  matrices.targets = {at::arange(10, at::kLong).remainder(2)};
  matrices.weights = at::arange(10, at::TensorOptions(dtype));
  return matrices;
}

const std::vector<std::int64_t> kSome = {7, 0, 7, 3};

TEST(MatrixRows, GathersRowsInTheOrderAskedFor) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader(ten_rows(dtype));
    Batch batch;

    reader.gather(kSome, batch);

    const at::Tensor index = at::tensor(kSome, at::kLong);
    EXPECT_TRUE(at::equal(batch.rows, index));
    EXPECT_EQ(batch.inputs[0].scalar_type(), dtype);
    EXPECT_TRUE(
        at::equal(batch.inputs[0], at::index_select(reader.matrices().inputs[0], 0, index)));
    EXPECT_TRUE(at::equal(batch.targets[0], at::tensor({1, 0, 1, 1}, at::kLong)));
    EXPECT_TRUE(at::equal(batch.original_targets[0], batch.targets[0]));
    EXPECT_TRUE(at::equal(batch.weights, at::tensor({7, 0, 7, 3}, at::TensorOptions(dtype))));
  }
}

TEST(MatrixRows, GathersTheGroupsOfTheRows) {
  MatrixRows::Matrices matrices = ten_rows();
  matrices.groups = at::arange(100, 110, at::kLong);
  const MatrixRows reader(std::move(matrices));
  const MatrixRows without(ten_rows());
  Batch batch;

  reader.gather(kSome, batch);

  EXPECT_TRUE(at::equal(batch.groups, at::tensor({107, 100, 107, 103}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.slice(1, 2).groups, at::tensor({100, 107}, at::kLong)));
  const Batch parts[] = {batch.slice(0, 2), batch.slice(2, 2)};
  EXPECT_TRUE(at::equal(Batch::join(parts).groups, batch.groups));
  EXPECT_TRUE(batch.to(at::kCPU).groups.is_same(batch.groups));
  const void* const memory = batch.groups.data_ptr();
  reader.gather(std::vector<std::int64_t>{1, 2, 4, 5}, batch);
  EXPECT_EQ(batch.groups.data_ptr(), memory);
  without.gather(kSome, batch);
  EXPECT_FALSE(batch.groups.defined());
}

TEST(MatrixRows, WritesIntoTheBatchThatIsThere) {
  const MatrixRows reader(ten_rows());
  Batch batch;
  reader.gather(kSome, batch);
  const void* inputs = batch.inputs[0].data_ptr();
  const void* targets = batch.targets[0].data_ptr();
  const void* weights = batch.weights.data_ptr();

  reader.gather(std::vector<std::int64_t>{1, 2, 4, 5}, batch);

  EXPECT_EQ(batch.inputs[0].data_ptr(), inputs);
  EXPECT_EQ(batch.targets[0].data_ptr(), targets);
  EXPECT_EQ(batch.weights.data_ptr(), weights);
  EXPECT_TRUE(at::equal(batch.targets[0], at::tensor({1, 0, 0, 1}, at::kLong)));
}

TEST(MatrixRows, MakesNewTensorsWhenTheBatchHasAnotherSize) {
  const MatrixRows reader(ten_rows());
  Batch batch;
  reader.gather(kSome, batch);
  const at::Tensor before = batch.inputs[0];

  reader.gather(std::vector<std::int64_t>{9}, batch);

  EXPECT_EQ(before.size(0), 4);
  EXPECT_TRUE(at::equal(batch.inputs[0], at::tensor({27.F, 28.F, 29.F}).view({1, 3})));
}

TEST(MatrixRows, GathersNoRowsAtAll) {
  const MatrixRows reader(ten_rows());
  Batch batch;

  reader.gather({}, batch);

  EXPECT_EQ(batch.size(), 0);
  EXPECT_EQ(batch.inputs[0].sizes(), (std::vector<std::int64_t>{0, 3}));
}

TEST(MatrixRows, LeavesOutWhatTheDataDoesNotHave) {
  MatrixRows::Matrices matrices = ten_rows();
  matrices.spec.targets.clear();
  matrices.spec.has_weights = false;
  matrices.targets.clear();
  matrices.weights = at::Tensor();
  const MatrixRows reader(std::move(matrices));
  Batch batch;
  batch.targets = {at::arange(4)};
  batch.weights = at::arange(4);

  reader.gather(kSome, batch);

  EXPECT_TRUE(batch.targets.empty());
  EXPECT_TRUE(batch.original_targets.empty());
  EXPECT_FALSE(batch.weights.defined());
  EXPECT_THROW(static_cast<void>(reader.targets(0)), ContractViolation);
  EXPECT_FALSE(reader.groups().defined());
  EXPECT_FALSE(reader.timestamps().defined());
}

/// Three texts of the lengths 2, 4 and 1, with a class per position and two numbers per position.
MatrixRows::Matrices three_texts() {
  MatrixRows::Matrices matrices;
  PortSpec text{"text", {kVaries}, {}, Role::kTokens, at::kLong, 9};
  PortSpec lengths{"text.lengths", {}, {}, Role::kLengths, at::kLong, 0, "text"};
  TargetSpec tags = class_target("tags", {"a", "b"}, {kVaries});
  TargetSpec pairs{"pairs", TargetKind::kNumbers, {kVaries, 2}};
  tags.padded_like = pairs.padded_like = "text";
  matrices.spec.inputs = {text, lengths};
  matrices.spec.targets = {tags, pairs};
  matrices.inputs = {at::tensor({1, 2, 0, 0, 3, 4, 5, 6, 7, 0, 0, 0}, at::kLong).view({3, 4}),
                     at::tensor({2, 4, 1}, at::kLong)};
  matrices.targets = {at::tensor({1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0}, at::kLong).view({3, 4}),
                      at::arange(24, at::kFloat).view({3, 4, 2})};
  return matrices;
}

TEST(MatrixRows, PadsABatchToItsLongestRowAndNoFurther) {
  const MatrixRows reader(three_texts());
  Batch batch;

  reader.gather(std::vector<std::int64_t>{2, 0}, batch);

  EXPECT_TRUE(at::equal(batch.inputs[0], at::tensor({7, 0, 1, 2}, at::kLong).view({2, 2})));
  EXPECT_TRUE(at::equal(batch.inputs[1], at::tensor({1, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.targets[0], at::tensor({1, 0, 1, 0}, at::kLong).view({2, 2})));
  EXPECT_EQ(batch.targets[1].sizes(), (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_EQ(batch.targets[1][1][1][0].item<float>(), 2);
  reader.gather(std::vector<std::int64_t>{1}, batch);
  EXPECT_EQ(batch.inputs[0].size(1), 4) << "the next batch is as long as its own rows";
}

TEST(MatrixRows, PaddingHasNoWeight) {
  const MatrixRows reader(three_texts());
  Batch batch;

  reader.gather(std::vector<std::int64_t>{2, 0}, batch);

  const at::Tensor real = at::tensor({1.F, 0.F, 1.F, 1.F}).view({2, 2});
  ASSERT_EQ(batch.position_weights.size(), 2U);
  EXPECT_TRUE(at::equal(batch.position_weights[0], real));
  EXPECT_TRUE(at::equal(batch.position_weights[1], real));
}

TEST(MatrixRows, WeightsOfPositionsAreMultipliedWithPadding) {
  MatrixRows::Matrices matrices = three_texts();
  matrices.position_weights = {at::arange(12, at::kFloat).view({3, 4}), at::Tensor()};
  const MatrixRows reader(std::move(matrices));
  Batch batch;

  reader.gather(std::vector<std::int64_t>{2, 0}, batch);

  EXPECT_TRUE(at::equal(batch.position_weights[0], at::tensor({8.F, 0.F, 0.F, 1.F}).view({2, 2})));
  EXPECT_TRUE(at::equal(batch.position_weights[1], at::tensor({1.F, 0.F, 1.F, 1.F}).view({2, 2})));
  EXPECT_TRUE(at::equal(reader.position_weights(0), at::arange(12, at::kFloat).view({3, 4})));
  EXPECT_FALSE(reader.position_weights(1).defined());
}

TEST(MatrixRows, GivesTheLengthsOfInputsThatVary) {
  const MatrixRows reader(three_texts());

  EXPECT_TRUE(at::equal(reader.lengths(0), at::tensor({2, 4, 1}, at::kLong)));
  EXPECT_FALSE(reader.lengths(1).defined());
}

TEST(MatrixRows, RefusesARowThatIsNotThere) {
  const MatrixRows reader(ten_rows());
  Batch batch;

  try {
    reader.gather(std::vector<std::int64_t>{3, 10}, batch);
    FAIL() << "row 10 of ten rows was read";
  } catch (const ContractViolation& error) {
    EXPECT_THAT(error.what(), HasSubstr("row 10 of 10 was asked for"));
  }
}

TEST(MatrixRows, DescribesRowsByTheirNumberOrAsTold) {
  MatrixRows::Matrices named = ten_rows();
  named.describe_row = [](std::int64_t row) { return "line " + std::to_string(row + 2); };

  EXPECT_EQ(MatrixRows(ten_rows()).describe_row(3), "row 3");
  EXPECT_EQ(MatrixRows(std::move(named)).describe_row(3), "line 5");
}

TEST(MatrixRows, ContentHashSeesEveryValueAndNothingElse) {
  const std::string hash = MatrixRows(ten_rows()).content_hash();

  EXPECT_EQ(hash.size(), 32U);
  EXPECT_EQ(MatrixRows(ten_rows()).content_hash(), hash);
  EXPECT_NE(MatrixRows(ten_rows(at::kDouble)).content_hash(), hash);
  const auto changed = [](auto&& change) {
    MatrixRows::Matrices matrices = ten_rows();
    change(matrices);
    return MatrixRows(std::move(matrices)).content_hash();
  };
  EXPECT_NE(changed([](auto& m) { m.inputs[0][9][2] = 0; }), hash);
  EXPECT_NE(changed([](auto& m) { m.targets[0][4] = 1; }), hash);
  EXPECT_NE(changed([](auto& m) { m.weights[4] = 1; }), hash);
  EXPECT_NE(changed([](auto& m) { m.groups = at::arange(10); }), hash);
  EXPECT_NE(changed([](auto& m) { m.timestamps = at::arange(10, at::kDouble); }), hash);
  EXPECT_NE(changed([](auto& m) { m.spec.inputs[0].columns[1].name = "z"; }), hash);
}

TEST(MatrixRows, RefusesMatricesThatDoNotFitTheSpec) {
  const auto message = [](auto&& change) -> std::string {
    MatrixRows::Matrices matrices = ten_rows();
    change(matrices);
    try {
      MatrixRows reader(std::move(matrices));
    } catch (const ContractViolation& error) {
      return error.what();
    }
    return "";
  };

  EXPECT_THAT(message([](auto& m) { m.inputs[0] = m.inputs[0].slice(1, 0, 2).contiguous(); }),
              HasSubstr("input \"features\" must have 10 rows of shape [3], got [10, 2]"));
  EXPECT_THAT(message([](auto& m) { m.inputs[0] = m.inputs[0].t().contiguous().t(); }),
              HasSubstr("input \"features\" must be contiguous and on the CPU"));
  EXPECT_THAT(message([](auto& m) { m.targets[0] = m.targets[0].slice(0, 0, 9); }),
              HasSubstr("target \"kind\" must have 10 rows of shape [], got [9]"));
  EXPECT_THAT(message([](auto& m) { m.targets[0] = m.targets[0].to(at::kFloat); }),
              HasSubstr("int64 for classes"));
  EXPECT_THAT(message([](auto& m) { m.targets.clear(); }), HasSubstr("one matrix per target"));
  EXPECT_THAT(message([](auto& m) { m.weights = at::Tensor(); }),
              HasSubstr("disagree on whether there are weights"));
  EXPECT_THAT(message([](auto& m) { m.inputs.clear(); }), HasSubstr("one matrix per input port"));
}

}  // namespace
}  // namespace treadle
