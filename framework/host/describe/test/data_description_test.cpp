#include <treadle/host/describe/data_description.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "reference.h"

namespace treadle::describe {
namespace {

using ::testing::HasSubstr;

/// Numbers with holes, categories, a time, two targets, and a split in which times are shuffled.
DescribedTable full_table() {
  const at::Tensor numbers = numbers_of(reference().at("holes"));
  const at::Tensor rows = at::arange(80, at::kLong);
  DescribedTable table;
  for (std::int64_t i = 0; i < 4; ++i)
    table.inputs.push_back(
        {.name = "x" + std::to_string(i), .values = numbers.select(1, i).contiguous()});
  table.inputs.push_back({.name = "leak", .values = rows.remainder(2).to(at::kDouble)});
  table.inputs.push_back({.name = "color",
                          .kind = ColumnKind::kCategory,
                          .values = codes_of(reference().at("first")),
                          .names = {"red", "green", "blue", "\xC3\xA4"}});
  table.targets.push_back({.name = "class",
                           .kind = ColumnKind::kCategory,
                           .values = rows.remainder(2),
                           .names = {"no", "yes"}});
  table.targets.push_back({.name = "price", .values = numbers.select(1, 0) * 0.1});
  table.others.push_back({.name = "when",
                          .kind = ColumnKind::kTime,
                          .values = rows.to(at::kDouble) * 3600,
                          .is_date = true});
  table.parts = {rows.masked_select(rows.remainder(3).ne(0)),
                 rows.masked_select(rows.remainder(3).eq(0))};
  table.rows_of_data = 1000;
  table.notes = {"a note"};
  return table;
}

TEST(DataDescription, ComesBackFromItsJson) {
  const nlohmann::json stored = describe(full_table());

  const nlohmann::json again = description_from_json(nlohmann::json::parse(stored.dump()));

  EXPECT_EQ(again, stored);
  EXPECT_EQ(again.dump(), stored.dump());
}

TEST(DataDescription, HasEachPart) {
  const DataDescription description = describe(full_table());

  EXPECT_EQ(description.rows, 1000);
  EXPECT_EQ(description.described, 80);
  EXPECT_EQ(description.inputs.size(), 6U);
  EXPECT_EQ(description.pearson.labels.size(), 6U);  // x0 … x3, leak, price
  EXPECT_NEAR(description.strong_pairs.at(0).value, 1, 1e-12);
  EXPECT_EQ(description.strong_pairs.at(0).second, "price");
  EXPECT_EQ(description.cramers_v.size(), 1U);
  EXPECT_FALSE(description.correlation_ratio.empty());
  EXPECT_EQ(description.clusters.rows, 80);
  EXPECT_EQ(description.validation_rows, 27);
  EXPECT_EQ(description.drift.size(), 9U);
  std::vector<std::string> suspected;
  for (const Suspicion& suspicion : description.suspicions)
    suspected.push_back(suspicion.column + "/" + suspicion.target);
  EXPECT_THAT(suspected, ::testing::ElementsAre("x0/price", "leak/class", "when/"));
}

TEST(DataDescription, IsThatOfNoColumnsToo) {
  const nlohmann::json stored = describe({});

  EXPECT_EQ(nlohmann::json(description_from_json(stored)), stored);
  EXPECT_FALSE(stored.contains("split"));
}

// Rows whose images differ are not equal where their numbers are.
TEST(DataDescription, CountsNoDuplicatesWhereItHasNotAllInputs) {
  DescribedTable table;
  table.inputs = {{.name = "a", .values = at::zeros({5}, at::kDouble)}};
  EXPECT_EQ(describe(table).duplicates.rows, 4);
  table.has_all_inputs = false;
  EXPECT_EQ(describe(table).duplicates.rows, 0);
}

TEST(DataDescription, LimitsHowManyColumnsAreCorrelatedAndSaysSo) {
  DescribedTable table;
  for (std::size_t i = 0; i < kMostCorrelatedColumns + 5; ++i)
    table.inputs.push_back({.name = std::to_string(i), .values = at::arange(12, at::kDouble)});

  const DataDescription description = describe(table);

  EXPECT_EQ(description.pearson.labels.size(), kMostCorrelatedColumns);
  EXPECT_EQ(description.strong_pairs.size(), kMostStrongPairs);
  EXPECT_EQ(description.inputs.size(), kMostCorrelatedColumns + 5);
  EXPECT_THAT(description.notes,
              ::testing::ElementsAre("only the first 100 of 105 columns of numbers are correlated "
                                     "and clustered"));
}

TEST(DataDescription, ComparesATargetThatIsAnInputOnce) {
  DescribedTable table = full_table();
  table.inputs.push_back(table.targets[1]);

  const DataDescription description = describe(table);

  EXPECT_EQ(description.pearson.labels.size(), 6U);
  EXPECT_EQ(description.drift.size(), 9U);
  EXPECT_EQ(description.targets.size(), 2U);
}

TEST(DataDescription, RefusesJsonOfAnotherForm) {
  const nlohmann::json stored = describe(full_table());
  for (const auto& item : stored.items()) {
    nlohmann::json other = stored;
    other[item.key()] = nlohmann::json::array({nlohmann::json::array({"odd"})});
    EXPECT_THROW(description_from_json(other), StorageError) << item.key();
  }
  try {
    description_from_json({{"rows", 3}});
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("described_rows"));
  }
}

}  // namespace
}  // namespace treadle::describe
