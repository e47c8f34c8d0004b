// Which columns a table of predictions has, and what it counts beside its rows.
#include "predict/prediction_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

namespace treadle::internal {
namespace {

using ::testing::ElementsAre;
using Integers = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Texts = std::vector<std::string>;

/// Remembers what was written.
class TableInMemory final : public TableWriter {
 public:
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Column& column : columns)
      all.push_back(column.name);
    return all;
  }

  std::vector<Column> columns;
  std::vector<Values> values;  // of the last chunk
  std::size_t rows = 0;
  bool is_closed = false;

 private:
  void do_open(const std::vector<Column>& given) override { columns = given; }
  void do_write(const std::vector<Values>& chunk, std::size_t count) override {
    values = chunk;
    rows += count;
  }
  void do_close() override { is_closed = true; }
};

Batch batch_of(std::int64_t rows) {
  Batch batch;
  batch.rows = at::arange(rows, at::kLong);
  return batch;
}

/// Quantiles of three rows in the order in which a loss may list them; 1 where they have crossed.
Prediction quantiles(const std::vector<std::int64_t>& crossed,
                     const std::vector<double>& of_90 = {3, 4, 5},
                     const std::vector<double>& of_10 = {1, 2, 5}) {
  const auto numbers = [](const std::vector<double>& values) {
    return at::tensor(values, at::kFloat).view({-1, 1});
  };
  Prediction prediction;
  prediction.values = numbers(of_10);
  prediction.extras = {{"q0.9", numbers(of_90), 0.9}, {"q0.1", numbers(of_10), 0.1}};
  prediction.crossed = at::tensor(crossed, at::kLong).to(at::kBool);
  return prediction;
}

TEST(PredictionWriter, CountsLinesWhoseQuantilesCross) {
  const std::vector<TargetSpec> targets{number_target("y"), number_target("z")};
  TableInMemory table;
  PredictionWriter writer(table, targets, {});

  writer.write({quantiles({0, 0, 0}), quantiles({0, 0, 0})}, batch_of(3));
  EXPECT_EQ(writer.crossed(), 0);
  writer.write({quantiles({0, 1, 1}), quantiles({0, 1, 0})}, batch_of(3));

  EXPECT_EQ(writer.crossed(), 2) << "a line counts once, whatever crosses in it";
  EXPECT_EQ(table.rows, 6U);
}

TEST(PredictionWriter, WritesTheDecisionsOnLabels) {
  TargetSpec target;
  target.name = "tags";
  target.kind = TargetKind::kLabels;
  target.shape = {2};
  target.class_names = {"a", "b"};
  const std::vector<TargetSpec> targets{target};
  Prediction prediction{TargetKind::kLabels, at::tensor({0.25, 0.75}, at::kFloat).view({1, 2})};
  prediction.decision = at::tensor({1, 0}, at::kLong).view({1, 2}).to(at::kBool);
  TableInMemory table;

  PredictionWriter writer(table, targets, {});
  writer.write({prediction}, batch_of(1));
  EXPECT_FALSE(table.is_closed);
  writer.close();

  EXPECT_THAT(table.names(), ElementsAre("row", "p(a)", "predicted(a)", "p(b)", "predicted(b)"));
  EXPECT_THAT(table.values,
              ElementsAre(Integers{0}, Floats{.25F}, Integers{1}, Floats{.75F}, Integers{0}));
  EXPECT_TRUE(table.is_closed);
}

TEST(PredictionWriter, WritesNumbersInThePrecisionTheyWereComputedIn) {
  const std::vector<TargetSpec> targets{number_target("y")};
  TableInMemory table;

  PredictionWriter(table, targets, {})
      .write({{TargetKind::kNumbers, at::tensor({.1}, at::kDouble).view({1, 1})}}, batch_of(1));

  EXPECT_THAT(table.values, ElementsAre(Integers{0}, Doubles{.1}));
}

TEST(PredictionWriter, GivesEachColumnANameOfItsOwn) {
  const std::vector<TargetSpec> targets{number_target("row")};
  TableInMemory table;
  PredictionWriter writer(table, targets, {});
  writer.keep({"row", "id"}, {{"3"}, {"x"}});

  writer.write({{TargetKind::kNumbers, at::tensor({2.}, at::kDouble).view({1, 1})}}, batch_of(1));

  EXPECT_THAT(table.names(), ElementsAre("row", "row (data)", "id", "row (2)"));
  EXPECT_THAT(table.values, ElementsAre(Integers{0}, Texts{"3"}, Texts{"x"}, Doubles{2}));
}

}  // namespace
}  // namespace treadle::internal
