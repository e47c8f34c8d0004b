#include <treadle/host/describe/column_summary.h>

#include <limits>

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference.h"

namespace treadle::describe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ColumnSummary, HasTheMomentsQuantilesAndHistogramOfNumpy) {
  const at::Tensor columns = numbers_of(reference().at("holes"));
  for (std::int64_t i = 0; i < 3; ++i) {
    const nlohmann::json& expected = reference().at("summaries").at(static_cast<std::size_t>(i));

    const ColumnSummary summary =
        summarize({.name = "x", .values = columns.select(1, i).contiguous()});

    ASSERT_TRUE(summary.numbers);
    const NumberSummary& numbers = *summary.numbers;
    expect_near({numbers.least, numbers.greatest, numbers.mean, numbers.deviation},
                {expected.at("min"), expected.at("max"), expected.at("mean"), expected.at("std")});
    expect_near({numbers.quantiles.begin(), numbers.quantiles.end()}, expected.at("quantiles"));
    EXPECT_EQ(numbers.histogram, expected.at("histogram").get<std::vector<std::int64_t>>());
    EXPECT_EQ(summary.distinct, expected.at("distinct"));
  }
}

TEST(ColumnSummary, CountsWhatIsNotFiniteAsMissing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const ColumnSummary summary = summarize(
      {.name = "x", .values = at::tensor({1.0, std::nan(""), kInfinity, 3.0}, at::kDouble)});

  EXPECT_EQ(summary.rows, 4);
  EXPECT_EQ(summary.missing, 2);
  EXPECT_EQ(summary.missing_share(), 0.5);
  EXPECT_EQ(summary.numbers->mean, 2);
}

TEST(ColumnSummary, HasNoNumbersWhereAllAreMissing) {
  const ColumnSummary summary =
      summarize({.name = "x", .values = at::full({3}, std::nan(""), at::kDouble)});

  EXPECT_EQ(summary.missing, 3);
  EXPECT_EQ(summary.distinct, 0);
  EXPECT_FALSE(summary.numbers);
}

TEST(ColumnSummary, HasOneBinForAConstant) {
  const ColumnSummary summary = summarize({.name = "x", .values = at::full({5}, 2.5, at::kDouble)});

  EXPECT_THAT(summary.numbers->histogram, ElementsAre(5));
  EXPECT_EQ(summary.numbers->deviation, 0);
}

TEST(ColumnSummary, ListsTheMostFrequentCategoriesFirst) {
  const ColumnSummary summary = summarize({.name = "color",
                                           .kind = ColumnKind::kCategory,
                                           .values = at::tensor({2, 0, 2, -1, 1, 2, 1}, at::kLong),
                                           .names = {"red", "green", "blue", "never"}});

  EXPECT_EQ(summary.missing, 1);
  EXPECT_EQ(summary.distinct, 3);
  ASSERT_EQ(summary.frequent.size(), 3U);
  EXPECT_EQ(summary.frequent[0].name, "blue");
  EXPECT_EQ(summary.frequent[0].rows, 3);
  EXPECT_EQ(summary.frequent[1].name, "green");
  EXPECT_EQ(summary.frequent[2].name, "red");
}

TEST(ColumnSummary, OfNoRowsIsEmpty) {
  const ColumnSummary summary = summarize({.name = "x", .values = at::full({0}, 0.0, at::kDouble)});

  EXPECT_EQ(summary.rows, 0);
  EXPECT_THAT(summary.frequent, IsEmpty());
}

}  // namespace
}  // namespace treadle::describe
