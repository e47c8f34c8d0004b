#include <treadle/core/validation/set_aside.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Rows = std::vector<std::int64_t>;
using By = SetAside::By;

/// Ten rows of two classes, 7 and 3, three groups and times that run backwards.
SplitRequest ten_to_split() {
  SplitRequest request;
  request.rows = 10;
  request.targets = {class_target("kind", {"common", "rare"})};
  request.target_values = {at::tensor({0, 0, 1, 0, 0, 1, 0, 0, 1, 0}, at::kLong)};
  request.groups = at::tensor({4, 4, 4, 4, 9, 9, 9, 2, 2, 2}, at::kLong);
  request.timestamps = at::arange(10, at::kDouble).neg();
  request.random = RandomStreams(5);
  return request;
}

/// Validates on the first row of what it gets and keeps the request.
struct FirstRow {
  ValidationPlan operator()(const SplitRequest& rest) {
    got = rest;
    return {{{"only", all_rows_but(rest.rows, {0}), {0}}}};
  }
  SplitRequest got;
};

template <typename Action>
std::string refused_data(Action&& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(SetAside, NotAtRandomTheLastComeFirst) {
  const SplitRequest request = ten_to_split();

  EXPECT_THAT(rows_set_aside(request, 3, {By::kRow, false}), ElementsAre(7, 8, 9));
  // 7 and 3 tenths of three rows, the larger remainder first: two common ones, one rare.
  EXPECT_THAT(rows_set_aside(request, 3, {By::kClass, false}), ElementsAre(7, 8, 9));
  EXPECT_THAT(rows_set_aside(request, 6, {By::kClass, false}), ElementsAre(4, 5, 6, 7, 8, 9));
  EXPECT_THAT(rows_set_aside(request, 3, {By::kTime}), ElementsAre(2, 1, 0));
}

TEST(SetAside, GroupsAreWholeAndAsManyAsFit) {
  const SplitRequest request = ten_to_split();

  EXPECT_THAT(rows_set_aside(request, 3, {By::kGroup, false}), ElementsAre(7, 8, 9));
  EXPECT_THAT(rows_set_aside(request, 6, {By::kGroup, false}), ElementsAre(4, 5, 6, 7, 8, 9));
  EXPECT_THAT(rows_set_aside(request, 5, {By::kGroup, false}), ElementsAre(7, 8, 9));
  // None fits: the smallest, the last of those.
  EXPECT_THAT(rows_set_aside(request, 1, {By::kGroup, false}), ElementsAre(7, 8, 9));
}

TEST(SetAside, TheSeedDecidesWhatIsShuffled) {
  SplitRequest request = ten_to_split();
  SplitRequest other = ten_to_split();
  other.random = RandomStreams(6);

  for (const By by : {By::kRow, By::kClass}) {
    EXPECT_EQ(rows_set_aside(request, 3, {by}), rows_set_aside(request, 3, {by}));
    EXPECT_NE(rows_set_aside(request, 3, {by}), rows_set_aside(other, 3, {by}));
  }
}

TEST(SetAside, TheSplitterSeesTheOtherRowsAlone) {
  FirstRow split;
  const ValidationPlan plan =
      plan_with_test_rows(ten_to_split(), 0.3, {By::kTime}, std::ref(split));

  EXPECT_THAT(plan.folds[0].test, ElementsAre(2, 1, 0));
  EXPECT_EQ(split.got.rows, 7);
  EXPECT_TRUE(split.got.target_values[0].equal(at::tensor({0, 0, 1, 0, 0, 1, 0}, at::kLong)));
  EXPECT_TRUE(split.got.groups.equal(at::tensor({4, 9, 9, 9, 2, 2, 2}, at::kLong)));
  EXPECT_TRUE(split.got.timestamps.equal(at::arange(3, 10, at::kDouble).neg()));
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(3));
  EXPECT_THAT(plan.folds[0].training, ElementsAre(4, 5, 6, 7, 8, 9));
}

TEST(SetAside, TestRowsAreNotThoseHeldOutNext) {
  const SplitRequest request = ten_to_split();
  FirstRow split;

  EXPECT_NE(plan_with_test_rows(request, 0.3, {By::kRow}, std::ref(split)).folds[0].test,
            rows_set_aside(request, 3, {By::kRow}));
}

TEST(SetAside, WithoutAFractionNothingIs) {
  FirstRow split;

  EXPECT_THAT(plan_with_test_rows(ten_to_split(), 0, {}, std::ref(split)).folds[0].test, IsEmpty());
  EXPECT_EQ(split.got.rows, 10);
}

TEST(SetAside, FractionsAreWholeRowsAndLeaveTwo) {
  FirstRow split;
  const auto count = [&](double fraction) {
    return plan_with_test_rows(ten_to_split(), fraction, {By::kRow}, std::ref(split))
        .folds[0]
        .test.size();
  };

  EXPECT_EQ(count(0.01), 1U);
  EXPECT_EQ(count(0.25), 3U);  // 2.5 is rounded up
  EXPECT_EQ(count(0.99), 8U);
}

TEST(SetAside, SaysHowManyRowsWereLeft) {
  SplitRequest two;
  two.rows = 2;
  FirstRow split;
  EXPECT_EQ(refused_data([&] { plan_with_test_rows(two, 0.5, {}, std::ref(split)); }),
            "the data has 2 rows; training, validation and test need at least one each");
  EXPECT_EQ(refused_data([&] {
              plan_with_test_rows(ten_to_split(), 0.4, {},
                                  [](const SplitRequest&) -> ValidationPlan {
                                    throw DataError("there are too few");
                                  });
            }),
            "there are too few; 4 of the 10 rows are set aside for the test");
  SplitRequest one_group = ten_to_split();
  one_group.groups = at::arange(10).mul(0);
  EXPECT_EQ(refused_data([&] { rows_set_aside(one_group, 3, {By::kGroup}); }),
            "all rows are of one group, and a group cannot be in two parts");
}

}  // namespace
}  // namespace treadle
