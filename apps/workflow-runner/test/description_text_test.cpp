#include "terminal/description_text.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

describe::DataDescription houses() {
  describe::DataDescription description;
  description.rows = 120000;
  description.described = 50000;
  describe::ColumnSummary area;
  area.name = "area\x1b[1m";
  area.rows = 50000;
  area.missing = 500;
  area.distinct = 90;
  area.numbers = {.least = 20,
                  .greatest = 250,
                  .mean = 81.5,
                  .deviation = 30.25,
                  .quantiles = {30, 60, 80, 100, 140},
                  .histogram = {1, 0, 4, 8}};
  describe::ColumnSummary town;
  town.name = "the town that the house is in";
  town.kind = describe::ColumnKind::kCategory;
  town.rows = 50000;
  town.distinct = 2;
  town.frequent = {{"Ulm", 30000}, {"Bonn", 20000}};
  describe::ColumnSummary sold;
  sold.name = "sold";
  sold.kind = describe::ColumnKind::kTime;
  sold.is_date = true;
  sold.rows = 50000;
  sold.distinct = 2;
  sold.numbers = {.least = 0, .greatest = 86400, .histogram = {1, 1}};
  description.inputs = {area, town};
  description.targets = {sold};
  description.strong_pairs = {{"area", "price", -0.876}};
  description.clusters = {
      .rows = 2000, .clusters = 2, .silhouette = 0.61, .sizes = {1500, 500}, .silhouettes = {0.61}};
  description.training_rows = 40000;
  description.validation_rows = 10000;
  description.drift = {{"area", describe::DriftMeasure::kKolmogorovSmirnov, 0.31, 0.02},
                       {"town", describe::DriftMeasure::kTotalVariation, 0.01, 0.02}};
  description.duplicates = {3, 1};
  description.notes = {"a note"};
  description.suspicions = {
      {.kind = describe::SuspicionKind::kColumn,
       .column = "area",
       .target = "sold",
       .measure = "AUC",
       .value = 0.997,
       .text = "\"area\" alone nearly determines \"sold\" (AUC 0.997); check"}};
  return description;
}

std::string text_in(const char* columns) {
  setenv("COLUMNS", columns, 1);
  std::string text = description_text(houses(), "houses.json", Terminal(-1, true, false));
  unsetenv("COLUMNS");
  return text;
}

TEST(DescriptionText, ShowsEachPart) {
  EXPECT_EQ(
      description_text(houses(), "houses.json", Terminal(-1, false, false)),
      R"(houses.json: 120000 rows, 2 inputs, 1 target; described by a random sample of 50000 rows (seed 0)

Inputs
number         missing  distinct      min   median       max     mean      std  histogram
area\u001b[1m      1 %        90  20.0000  80.0000  250.0000  81.5000  30.2500       ▁ ▄█

category                  most frequent        missing  distinct
the town that the house…  Ulm 60 %, Bonn 40 %        -         2

Targets
number  missing  distinct               min            median               max  mean  std  histogram
sold          -         2  1970-01-01 00:00  1970-01-01 00:00  1970-01-02 00:00     -    -         ██

Rank correlations (Spearman)
column  with   value
area    price  -0.88

Clusters
2 clusters of 2000 rows have the best silhouette, 0.61 (a reasonable structure); their sizes are 1500, 500

Split of the first fold
40000 training rows, 10000 validation rows
differs  measure             value  by chance
area     Kolmogorov-Smirnov   0.31       0.02

Duplicates
3 rows with the inputs of an earlier row; 1 validation row with those of a training row

Not described
a note

Suspected leaks
warning: "area" alone nearly determines "sold" (AUC 0.997); check
)");
}

TEST(DescriptionText, FitsNarrowTerminals) {
  for (const char* const columns : {"80", "60", "48"}) {
    std::string text = text_in(columns);
    while (!text.empty()) {
      const std::string row = text.substr(0, text.find('\n'));
      EXPECT_LE(columns_of(row), std::strtoul(columns, nullptr, 10)) << row;
      text.erase(0, row.size() + 1);
    }
  }
}

TEST(DescriptionText, OfCleanDataHasNoWarning) {
  describe::DataDescription description = houses();
  description.suspicions.clear();
  description.duplicates = {};
  description.drift.clear();

  EXPECT_THAT(description_text(description, "houses.json", Terminal(-1, false, false)),
              AllOf(HasSubstr("Suspected leaks\nnone\n"),
                    HasSubstr("no column differs between them by more than chance"),
                    Not(HasSubstr("Duplicates"))));
}

TEST(DescriptionText, ShowsSomeOfManyColumns) {
  describe::DataDescription description = houses();
  description.inputs.assign(70, description.inputs[0]);

  EXPECT_THAT(description_text(description, "houses.json", Terminal(-1, false, false)),
              HasSubstr("10 more columns with --json\n"));
}

}  // namespace
}  // namespace treadle::cli
