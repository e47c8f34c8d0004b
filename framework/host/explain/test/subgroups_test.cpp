#include <treadle/host/explain/subgroups.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explained.h"

namespace treadle::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSeeds = 20;
constexpr std::int64_t kRows = 2000;

/// Six columns: four of numbers, in quartiles, and two of five categories each.
std::vector<Levels> columns_for(std::uint64_t seed) {
  std::vector<Levels> columns;
  const at::Tensor numbers = normal_numbers(kRows, 6, seed);
  for (std::int64_t i = 0; i < 4; ++i)
    columns.push_back(quantile_levels("x" + std::to_string(i), numbers.select(1, i)));
  for (std::int64_t i = 4; i < 6; ++i) {
    const at::Tensor category = (numbers.select(1, i) * 1e6).to(at::kLong).remainder(5);
    columns.push_back(
        category_levels("c" + std::to_string(i), category, {"a", "b", "c", "d", "e"}));
  }
  return columns;
}

at::Tensor squared_errors(std::uint64_t seed) {
  return normal_numbers(kRows, 1, seed).select(1, 0).square();
}

TEST(FindSubgroups, FindsASubgroupOfThreeTimesTheErrorInNineteenOfTwentySeeds) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<Levels> columns = columns_for(seed);
    const at::Tensor is_planted = columns[4].level.eq(2);
    const at::Tensor losses = squared_errors(1000 + seed);
    const FoundSubgroups groups =
        find_subgroups(columns, at::where(is_planted, losses * 9, losses));
    found += groups.found.size() == 1 && groups.found.front().where.size() == 1 &&
             groups.found.front().where.front().column == "c4" &&
             groups.found.front().where.front().level == "c";
  }
  EXPECT_GE(found, 19);
}

TEST(FindSubgroups, FindsAPlantedPairInNineteenOfTwentySeeds) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<Levels> columns = columns_for(seed);
    const at::Tensor is_planted = columns[4].level.eq(2).logical_and(columns[5].level.eq(3));
    const at::Tensor losses = squared_errors(1000 + seed);
    const FoundSubgroups groups =
        find_subgroups(columns, at::where(is_planted, losses * 9, losses));
    for (const Subgroup& group : groups.found)
      found += (group.is_inside.logical_and(is_planted).sum().item<double>() >
                0.9 * is_planted.sum().item<double>());
  }
  EXPECT_GE(found, 19);
}

TEST(FindSubgroups, FindsNoneOfNoiseInEighteenOfTwentySeeds) {
  int none = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    none += find_subgroups(columns_for(seed), squared_errors(1000 + seed)).found.empty();
  EXPECT_GE(none, 18);
}

TEST(FindSubgroups, HasScipysPOfWelchsTestTimesTheTests) {
  const at::Tensor inside = numbers_of(reference().at("inside"));
  const at::Tensor outside = numbers_of(reference().at("outside"));
  const at::Tensor level = at::cat(
      {at::full({inside.size(0)}, 1, at::kLong), at::full({outside.size(0)}, 0, at::kLong)});
  const FoundSubgroups groups =
      find_subgroups({category_levels("c", level, {"no", "yes"})}, at::cat({inside, outside}));
  ASSERT_EQ(groups.found.size(), 1U);
  EXPECT_EQ(groups.tried, 2);
  EXPECT_NEAR(groups.found.front().p_value / (2 * reference().at("welch").get<double>()), 1, 1e-9);
  EXPECT_EQ(groups.found.front().where.front().level, "yes");
  EXPECT_EQ(groups.found.front().rows, 40);
}

TEST(FindSubgroups, LeavesOutSmallGroupsAndRowsWithoutALoss) {
  at::Tensor losses = squared_errors(1);
  losses[0] = std::nan("");
  const at::Tensor level = at::arange(kRows, at::kLong).lt(20).to(at::kLong);
  const FoundSubgroups groups =
      find_subgroups({category_levels("c", level, {"no", "yes"})}, losses * (1 + level * 100));
  EXPECT_EQ(groups.tried, 0);
  EXPECT_THAT(groups.found, IsEmpty());
}

TEST(QuantileLevels, PutEqualValuesIntoOneLevelAndMissingOnesIntoTheirOwn) {
  const double missing = std::nan("");
  const Levels levels = quantile_levels(
      "x", at::tensor(std::vector<double>{1, 1, 1, 1, 1, 2, 3, missing}, at::kDouble), 4);
  EXPECT_THAT(levels.names, ElementsAre("below 2", "from 2", "missing"));
  EXPECT_TRUE(
      levels.level.equal(at::tensor(std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 1, 2}, at::kLong)));
}

}  // namespace
}  // namespace treadle::explain
