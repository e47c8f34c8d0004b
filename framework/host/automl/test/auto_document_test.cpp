#include <treadle/host/automl/auto_document.h>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "test/profiles.h"

namespace treadle::automl {
namespace {

using Json = nlohmann::json;

Json document_of(TableProfile table, const DocumentOptions& options = {},
                 const std::string& target = "y") {
  return auto_document(read_table(std::move(table), {target}, "x.csv"),
                       {{"use", "csv"}, {"path", "x.csv"}}, Portfolio::built_in(), options);
}

ColumnProfile classes(std::int64_t count) {
  return text_column("y", count);
}

TEST(AutoDocument, NumbersAndClassesNeedLittle) {
  const Json document = document_of(table_of({number_column("a"), classes(2)}));

  EXPECT_EQ(document.at("data"), Json({{"use", "csv"},
                                       {"path", "x.csv"},
                                       {"target", "y"},
                                       {"task", "classification"},
                                       {"missing", "nan"},
                                       {"handle_unknown", "missing"}}));
  EXPECT_EQ(document.at("transforms"),
            Json::parse(R"([{"use": "impute", "strategy": "median", "columns": ["a"]},
                            {"use": "standardize"}])"));
  EXPECT_EQ(document.at("validation"), Json({{"use", "k_fold"}, {"folds", 5}}));
  EXPECT_EQ(document.at("search").at("objective"), "log_loss");
  EXPECT_TRUE(document.at("search").contains("ensemble"));
}

TEST(AutoDocument, DatesCategoriesAndMissingValuesHaveTransforms) {
  ColumnProfile town = text_column("town", 4);
  town.missing = 2;
  town.rarest = 1;
  ColumnProfile size = number_column("size");
  size.missing = 5;
  size.numbers = kRows - 5;
  ColumnProfile empty = number_column("empty");
  empty.missing = kRows;
  ColumnProfile target = number_column("y");
  target.missing = 3;
  target.numbers = kRows - 3;

  const Json document = document_of(
      table_of({town, size, number_column("b"), date_column("when", 1), empty, target}));

  const Json& data = document.at("data");
  EXPECT_EQ(data.at("columns"), Json({"town", "size", "b", "when"}));
  EXPECT_EQ(data.at("categorical"), Json({"town"}));
  EXPECT_EQ(data.at("dates"), Json({"when"}));
  EXPECT_EQ(data.at("calendar"), Json({"day_of_week", "day_of_month", "day_of_year", "hour"}));
  EXPECT_EQ(data.at("missing_target"), "drop_row");
  EXPECT_EQ(document.at("transforms"), Json::parse(R"([
      {"use": "impute", "category": "missing", "columns": ["town"]},
      {"use": "rare_categories", "min_count": 2, "max_categories": 64},
      {"use": "impute", "strategy": "median", "indicator": true, "columns": ["size"]},
      {"use": "impute", "strategy": "median", "columns": ["b", "when.days",
          "when.day_of_week_sin", "when.day_of_week_cos", "when.day_of_month_sin",
          "when.day_of_month_cos", "when.day_of_year_sin", "when.day_of_year_cos",
          "when.hour_sin", "when.hour_cos"]},
      {"use": "standardize", "target": true},
      {"use": "one_hot"}])"));
  EXPECT_EQ(document.at("search").at("objective"), "rmse");
}

TEST(AutoDocument, ColumnsWithoutNamesAreIndices) {
  TableProfile table = table_of({number_column("column_0"), number_column("column_1")});
  for (ColumnProfile& column : table.columns)
    column.has_name = false;
  table.parameters = {{"header", false}, {"separator", ";"}};

  const Json document = document_of(std::move(table), {}, "-1");

  EXPECT_EQ(document.at("data").at("target"), 1);
  EXPECT_EQ(document.at("data").at("header"), false);
  EXPECT_EQ(document.at("data").at("separator"), ";");
}

TEST(AutoDocument, AColumnWithoutANameBesideOthersIsAskedFor) {
  ColumnProfile nameless = number_column("column_0");
  nameless.has_name = false;

  const Json document = document_of(table_of({nameless, number_column("a"), classes(2)}));

  EXPECT_EQ(document.at("data").at("columns"), Json({0, "a"}));
  EXPECT_EQ(document.at("transforms").at(0).at("columns"), Json({"column_0", "a"}));
}

TEST(AutoDocument, ComputesInFloat64WhereAColumnNeedsIt) {
  ColumnProfile fine = number_column("a");
  fine.least = 1000;
  fine.greatest = 1000.01;

  EXPECT_EQ(document_of(table_of({fine, classes(2)})).at("precision"), "float64");
  EXPECT_FALSE(document_of(table_of({number_column("a"), classes(2)})).contains("precision"));
}

TEST(AutoDocument, AColumnCannotHaveTheNameOfWhatADateBecomes) {
  const auto complaint = [](std::vector<ColumnProfile> columns) {
    try {
      document_of(table_of(std::move(columns)));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_EQ(complaint({date_column("day", 0), number_column("day.days"), classes(2)}),
            "x.csv: column \"day.days\" has the name of what the date \"day\" becomes; give one of "
            "them another name, or leave one out: --drop day.days");
  EXPECT_EQ(complaint({date_column("day", 0), text_column("day.days", 3), classes(2)}), "");
}

TEST(AutoDocument, ManyRowsAreHeldOutAndRareClassesAreNotStratified) {
  TableProfile many = table_of({number_column("a"), number_column("y")});
  many.rows = kManyRows;
  for (ColumnProfile& column : many.columns) {
    column.numbers = kManyRows;
    column.distinct.reset();
  }
  ColumnProfile rare = classes(3);
  rare.rarest = 2;

  EXPECT_EQ(document_of(many).at("validation"),
            Json({{"use", "hold_out"}, {"fraction", 0.15}, {"test_fraction", 0.1}}));
  EXPECT_EQ(document_of(table_of({number_column("a"), rare})).at("validation").at("stratify"),
            false);
}

TEST(AutoDocument, RowsOfTwoClassesAreManyWhereBothHaveHalfAsMany) {
  const auto validation = [](std::int64_t rows, std::int64_t rarest) {
    ColumnProfile target = classes(2);
    target.rarest = rarest;
    TableProfile table = table_of({number_column("a"), target});
    table.rows = rows;
    for (ColumnProfile& column : table.columns)
      column.numbers = column.numbers > 0 ? rows : 0;
    return document_of(table).at("validation");
  };
  const Json folds = {{"use", "k_fold"}, {"folds", 5}, {"test_fraction", 0.1}};

  EXPECT_EQ(validation(24000, 864), folds);
  EXPECT_EQ(validation(24000, kManyRows / 2).at("use"), "hold_out");
  EXPECT_EQ(validation(kMostFoldedRows, 864), folds);
  EXPECT_EQ(validation(kMostFoldedRows + 1, 864).at("use"), "hold_out");
}

TEST(AutoDocument, FamiliesThatTheTableIsTooWideForAreLeftOut) {
  std::vector<ColumnProfile> columns{number_column("y")};
  for (int i = 0; i < 65; ++i)
    columns.push_back(number_column("c" + std::to_string(i)));

  const Json models = document_of(table_of(columns)).at("search").at("space").at("model");

  EXPECT_EQ(models.at("choice").size(), Portfolio::built_in().families().size() - 2);
  DocumentOptions options;
  options.families = {"ft_transformer"};
  EXPECT_THROW(document_of(table_of(columns), options), UsageError);
}

TEST(AutoDocument, FamiliesOfWhichATrialTakesAFifthOfTheTimeAreLeftOut) {
  TableProfile table = table_of({number_column("a"), classes(2)});
  table.rows = 1000;  // 4000 trained rows in each of 60 epochs
  for (ColumnProfile& column : table.columns)
    column.numbers = column.numbers > 0 ? 1000 : 0;
  const TableReading reading = read_table(std::move(table), {"y"}, "x.csv");
  const Portfolio portfolio = Portfolio::parse(
      R"({"tasks": {"classification": {"loss": "cross_entropy", "objective": "log_loss", "metrics": []}},
          "search": {}, "document": {}, "space": {},
          "families": [{"name": "fast", "model": "A", "seconds": {"row": 1e-6}},
                       {"name": "slow", "model": "B", "seconds": {"row": 1e-5, "column": 9e-5}},
                       {"name": "free", "model": "C"}]})",
      "p.json");
  DocumentOptions options;
  const auto models = [&](const DocumentOptions& asked) {
    const Json document = auto_document(reading, {{"use", "csv"}}, portfolio, asked);
    return document.at("search").at("space").contains("model")
               ? document.at("search").at("space").at("model").at("choice")
               : Json::array({document.at("model")});
  };
  using Names = std::vector<std::string>;

  EXPECT_EQ(models(options), Json({"A", "B", "C"}));  // there is no limit
  options.time = "121s";                              // a trial of B takes 24 s
  EXPECT_EQ(models(options), Json({"A", "B", "C"}));
  EXPECT_EQ(slow_families(reading, portfolio, options), Names());
  options.time = "119s";
  EXPECT_EQ(models(options), Json({"A", "C"}));
  EXPECT_EQ(slow_families(reading, portfolio, options), Names{"slow"});
  options.workers = 2;
  EXPECT_EQ(models(options), Json({"A", "B", "C"}));
  options.time = "1s";
  options.families = {"slow"};
  EXPECT_EQ(models(options), Json::array({"B"}));
  EXPECT_EQ(slow_families(reading, portfolio, options), Names());
}

TEST(AutoDocument, HasTheBudgetAndTheFamiliesThatWereAskedFor) {
  DocumentOptions options{"name", 7, 3, "20m", {"mlp"}};

  const Json document = document_of(table_of({number_column("a"), classes(2)}), options);

  EXPECT_EQ(document.at("name"), "name");
  EXPECT_EQ(document.at("seed"), 7);
  EXPECT_EQ(document.at("search").at("trials"), 3);
  EXPECT_EQ(document.at("search").at("budget"), Json({{"time", "20m"}}));
  EXPECT_EQ(document.at("model"), Json({{"use", "mlp"}}));
  EXPECT_FALSE(document.at("search").at("space").contains("model"));
}

TEST(AutoDocument, FewTrialsBeginWithTheStartsOfTheFirstFamilies) {
  const auto starts = [](std::int64_t trials) {
    DocumentOptions options;
    options.trials = trials;
    return document_of(table_of({number_column("a"), classes(2)}), options)
        .at("search")
        .at("initial");
  };

  EXPECT_EQ(starts(2).size(), 2U);
  EXPECT_EQ(starts(2)[0], starts(100)[0]);
  EXPECT_EQ(starts(2)[1], starts(100)[1]);
  EXPECT_GT(starts(100).size(), 4U);
}

}  // namespace
}  // namespace treadle::automl
