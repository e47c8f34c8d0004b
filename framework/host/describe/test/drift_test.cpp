#include <treadle/host/describe/drift.h>

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/random.h>

#include "reference.h"

namespace treadle::describe {
namespace {

using ::testing::IsEmpty;

TEST(KolmogorovSmirnov, EqualsScipys) {
  EXPECT_NEAR(kolmogorov_smirnov(numbers_of(reference().at("x")), numbers_of(reference().at("y"))),
              reference().at("ks").get<double>(), kReferenceTolerance);
}

TEST(TotalVariation, EqualsHalfTheDifferencesOfShares) {
  EXPECT_NEAR(
      total_variation(codes_of(reference().at("part_a")), codes_of(reference().at("part_b"))),
      reference().at("total_variation").get<double>(), kReferenceTolerance);
}

DescribedColumn column_of(std::string name, const at::Tensor& values) {
  return {.name = std::move(name),
          .kind = values.is_floating_point() ? ColumnKind::kNumber : ColumnKind::kCategory,
          .values = values};
}

RowParts first_train(std::int64_t training, std::int64_t rows) {
  return {at::arange(training, at::kLong), at::arange(training, rows, at::kLong)};
}

TEST(Drift, IsWithinChanceForRowsOfOneDistribution) {
  RandomBits bits(5);
  int beyond = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> numbers;
    std::vector<std::int64_t> categories;
    for (int row = 0; row < 150; ++row) {
      numbers.push_back(bits.normal());
      categories.push_back(static_cast<std::int64_t>(bits.below(4)));
    }
    const std::vector columns{column_of("x", at::tensor(numbers, at::kDouble)),
                              column_of("c", at::tensor(categories, at::kLong))};
    for (const ColumnDrift& drift : drift_between(columns, first_train(100, 150)))
      beyond += drift.value > drift.by_chance ? 1 : 0;
  }
  EXPECT_LE(beyond, 8);  // 4 of 400 are expected
}

TEST(Drift, ListsTheColumnThatDiffersMostFirst) {
  const at::Tensor rows = at::arange(200, at::kDouble);
  const std::vector columns{column_of("same", rows.remainder(10)), column_of("trend", rows),
                            column_of("color", rows.ge(100).to(at::kLong))};

  const std::vector<ColumnDrift> drifts = drift_between(columns, first_train(100, 200));

  ASSERT_EQ(drifts.size(), 3U);
  EXPECT_EQ(drifts[2].column, "same");
  EXPECT_LT(drifts[2].value, drifts[2].by_chance);
  EXPECT_EQ(drifts[0].value, 1);
  EXPECT_GT(drifts[1].value, drifts[1].by_chance);
  EXPECT_THAT(drift_between(columns, {}), IsEmpty());
}

TEST(Duplicates, AreRowsThatAreEqualInAllColumns) {
  const double nan = std::nan("");
  const std::vector columns{
      column_of("x", at::tensor({1.0, 2.0, 1.0, nan, nan, 1.0, 0.0, -0.0}, at::kDouble)),
      column_of("c", at::tensor({0, 0, 0, -1, -1, 1, 2, 2}, at::kLong))};

  const Duplicates found = find_duplicates(
      columns, {at::tensor({0, 1, 3, 6}, at::kLong), at::tensor({2, 4, 5, 7}, at::kLong)});

  EXPECT_EQ(found.rows, 3);
  EXPECT_EQ(found.across, 3);
}

TEST(Duplicates, DoNotDependOnTheOrderOfColumns) {
  const at::Tensor rows = at::arange(300, at::kLong);
  const std::vector columns{column_of("a", rows.remainder(7)), column_of("b", rows.remainder(5)),
                            column_of("c", rows.remainder(2))};

  EXPECT_EQ(find_duplicates(columns, {}).rows, 300 - 70);
  EXPECT_EQ(find_duplicates(std::vector{columns[2], columns[0], columns[1]}, {}).rows, 300 - 70);
  EXPECT_EQ(find_duplicates({}, {}).rows, 0);
}

}  // namespace
}  // namespace treadle::describe
