#include <treadle/core/history/history.h>

#include <gmock/gmock.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;

TEST(History, FindsItsNumbersByName) {
  EpochSummary row;
  row.train_loss = 0.5;
  row.learning_rate = 0.01;
  row.metrics = {{"accuracy", 0.9, Direction::kHigherIsBetter}};
  row.logged = {{"encoded", 3, Direction::kNone}, {"accuracy", 7, Direction::kNone}};

  EXPECT_EQ(find_value(row, "train_loss")->value, 0.5);
  EXPECT_EQ(find_value(row, "learning_rate")->value, 0.01);
  EXPECT_EQ(find_value(row, "encoded")->value, 3);
  EXPECT_EQ(find_value(row, "accuracy")->value, 0.9) << "the metric comes first";
  EXPECT_EQ(find_value(row, "accuracy")->direction, Direction::kHigherIsBetter);
  EXPECT_FALSE(find_value(row, "val_loss"));
  EXPECT_FALSE(find_value(row, "recall"));
}

TEST(History, HasTheTrendOfANumber) {
  std::vector<EpochSummary> rows(3);
  rows[0].val_loss = 3;
  rows[2].val_loss = 1;
  for (EpochSummary& row : rows)
    row.metrics = {
        {"accuracy", static_cast<double>(&row - rows.data()), Direction::kHigherIsBetter}};

  EXPECT_THAT(trend_of(rows, "val_loss").values(), ElementsAre(3, 1)) << "where it is there";
  EXPECT_TRUE(trend_of(rows, "accuracy").improving());
  EXPECT_TRUE(trend_of(rows, "unknown").empty());
}

}  // namespace
}  // namespace treadle
