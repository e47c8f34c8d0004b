// Margins of XGBoost itself: xgboost_reference.py. Others were computed by hand.
#include "tree_grower.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/captured_output.h>

#include "made_trees.h"

namespace treadle::trees {
namespace {

using ::testing::HasSubstr;

struct Learned {
  TreeSum trees;
  at::Tensor margins;
};

Learned boosted(const at::Tensor& rows, const TreeTargets& targets, const TreeObjective& objective,
                const GrowthOptions& options, std::int64_t margins, int rounds) {
  Learned learned{TreeSum(rows.size(1), margins), {}};
  learned.trees.set_base(base_of(targets, objective, margins));
  learned.margins = learned.trees.margins_of(rows);
  TreeGrower grower(rows, targets, objective.name, options, margins);
  for (int round = 0; round < rounds; ++round) {
    learned.trees.add_round(grower.grow(learned.margins, static_cast<std::uint64_t>(round)), "1");
    learned.trees.add_rounds(rows, round, learned.margins);
  }
  return learned;
}

class GrowsAsXgboost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library_version().starts_with("1.7."))
      GTEST_SKIP() << "the expected values are of XGBoost 1.7.4, not of " << library_version();
  }

  void expect_margins(const at::Tensor& labels, const std::string& objective,
                      const nlohmann::json& options, std::int64_t margins, int rounds,
                      const std::vector<double>& expected) const {
    constexpr double kTolerance = 1e-5;  // bases are sums of float32 or of float64
    const TreeTargets targets{labels.to(at::kFloat).view({kRows, 1}), weights_};
    const at::Tensor got =
        boosted(rows_, targets, {objective, {}}, growth(options), margins, rounds)
            .margins.index_select(0, at::tensor({0, 1, 7, 150, 299}))
            .flatten();
    ASSERT_EQ(got.numel(), static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(got[static_cast<std::int64_t>(i)].item<float>(), expected[i], kTolerance) << i;
  }

  static constexpr std::int64_t kRows = 300;

  /// As in xgboost_reference.py.
  static at::Tensor rows() {
    at::Tensor rows = waves(kRows, 4);
    rows.select(1, 1).slice(0, 0, kRows, 7).fill_(std::numeric_limits<float>::quiet_NaN());
    return rows;
  }
  at::Tensor numbers() const {
    const at::Tensor known = rows_.to(at::kDouble).nan_to_num();
    return 3 * known.select(1, 0) * known.select(1, 1) + known.select(1, 2).abs();
  }

  const at::Tensor rows_ = rows();
  const at::Tensor weights_ = (at::arange(kRows).remainder(3) + 0.5).to(at::kFloat);
};

TEST_F(GrowsAsXgboost, ForNumbers) {
  expect_margins(numbers(), "reg:squarederror", nlohmann::json::object(), 1, 10,
                 {0.632070243, 0.423923165, 0.925355196, 2.19110847, 0.0159047041});
}

TEST_F(GrowsAsXgboost, WithEveryParameterThatDrawsNothing) {
  expect_margins(numbers(), "reg:squarederror",
                 {{"max_depth", 0},
                  {"max_leaves", 5},
                  {"grow_policy", "lossguide"},
                  {"learning_rate", 0.5},
                  {"reg_lambda", 0.25},
                  {"reg_alpha", 0.5},
                  {"gamma", 0.1},
                  {"min_child_weight", 9.0},
                  {"max_bin", 16},
                  {"max_delta_step", 0.3}},
                 1, 10, {0.39696756, 0.601150572, 0.876314759, 2.11394095, 0.297620147});
}

TEST_F(GrowsAsXgboost, ForTwoClasses) {
  expect_margins(numbers().gt(0.5), "binary:logistic", {{"max_depth", 3}}, 1, 10,
                 {-0.854423463, -2.01697063, 2.89166999, 2.11259556, -2.41013908});
}

TEST_F(GrowsAsXgboost, ForThreeClasses) {
  expect_margins(numbers().gt(0).to(at::kLong) + numbers().gt(0.8), "multi:softprob",
                 {{"max_depth", 3}}, 3, 5,
                 {-2.78489566, 0.425484419, -1.37272191, -1.06846511, 0.0414830446, -1.44699728,
                  -2.78310966, -1.15841532, 0.164091676, -2.78489566, -1.89961958, 0.443597555,
                  -2.73970222, -0.61713028, -1.37272191});
}

// Base 1/2; gradients 1/2, 1/2, -1/2, -1/2; leaves -sum / (2 + lambda).
TEST(TreeGrower, ASplitIsThatByHand) {
  const at::Tensor rows = at::arange(4, at::kFloat).view({4, 1});
  const TreeTargets targets{at::tensor({0.0F, 0.0F, 1.0F, 1.0F}).view({4, 1}), {}};

  const Learned learned = boosted(rows, targets, {"reg:squarederror", {}},
                                  growth({{"max_depth", 1}, {"learning_rate", 1.0}}), 1, 1);

  const float third = 1.0F / 3;
  EXPECT_TRUE(learned.margins.flatten().allclose(
      at::tensor({0.5F - third, 0.5F - third, 0.5F + third, 0.5F + third})));
  const at::Tensor between = at::tensor({1.01F, 1.99F}).view({2, 1});
  const at::Tensor sides = learned.trees.margins_of(between).flatten();
  EXPECT_LE(sides[0].item<float>(), sides[1].item<float>());
}

// With all weight on the third row, the base is its target and no split is better than none.
TEST(TreeGrower, RowsCountByTheirWeights) {
  const at::Tensor rows = at::arange(4, at::kFloat).view({4, 1});
  const TreeTargets targets{at::tensor({0.0F, 0.0F, 5.0F, 1.0F}).view({4, 1}),
                            at::tensor({0.0F, 0.0F, 2.0F, 0.0F})};

  const Learned learned = boosted(rows, targets, {"reg:squarederror", {}}, growth(), 1, 3);

  EXPECT_TRUE(learned.margins.allclose(at::full({4, 1}, 5.0F)));
}

TEST(TreeGrower, WhatARoundDrawsIsAFunctionOfItsSeed) {
  const at::Tensor rows = waves(200, 10);
  const TreeTargets targets{rows.select(1, 0).mul(rows.select(1, 1)).view({200, 1}), {}};
  for (const char* const draws :
       {"subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode"}) {
    const GrowthOptions options = growth({{draws, 0.5}});
    const at::Tensor margins = at::zeros({200, 1});
    const auto fresh = [&] { return TreeGrower(rows, targets, "reg:squarederror", options, 1); };
    TreeGrower used(rows, targets, "reg:squarederror", options, 1);
    const std::vector<Tree> seven = used.grow(margins, 7);
    const std::vector<Tree> eight = used.grow(margins, 8);

    EXPECT_NE(seven, eight) << draws;
    EXPECT_EQ(used.grow(margins, 7), seven) << draws;
    EXPECT_EQ(fresh().grow(margins, 8), eight) << draws;
  }
}

// One tree for each number.
TEST(TreeGrower, LearnsSeveralNumbersAtOnce) {
  const at::Tensor rows = waves(200, 3);
  const at::Tensor labels = rows.slice(1, 0, 2).mul(2).contiguous();

  const Learned learned = boosted(rows, {labels, {}}, {"reg:squarederror", {}}, growth(), 2, 30);

  EXPECT_LT(learned.margins.sub(labels).abs().mean().item<float>(), 0.05);
}

TEST(TreeGrower, RefusesInfiniteInputs) {
  at::Tensor rows = waves(10, 3);
  rows[4][1] = std::numeric_limits<float>::infinity();
  try {
    TreeGrower(rows, {at::zeros({10, 1}), {}}, "reg:squarederror", growth(), 1);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("column 2 of the inputs"));
  }
}

TEST(TreeGrower, ErrorsOfTheLibraryAreErrorsOfTheData) {
  at::Tensor labels = at::zeros({10, 1});
  labels[3][0] = std::numeric_limits<float>::quiet_NaN();
  try {
    TreeGrower(waves(10, 3), {labels, {}}, "reg:squarederror", growth(), 1);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("XGBoost " + library_version() + " could not take"));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("Stack trace")));
  }
}

TEST(TreeGrower, ATreeWithoutAnyLimitIsRefused) {
  EXPECT_THROW(growth({{"max_depth", 0}}), DocumentError);
}

}  // namespace
}  // namespace treadle::trees
