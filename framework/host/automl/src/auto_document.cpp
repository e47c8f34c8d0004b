#include <treadle/host/automl/auto_document.h>

#include <algorithm>
#include <bit>
#include <utility>

#include <treadle/base/calendar.h>
#include <treadle/base/duration.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "option_text.h"

namespace treadle::automl {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kUsualTrials = 50;
constexpr std::int64_t kMostTrials = 100'000;  // more than any budget allows
constexpr std::int64_t kFolds = 5;
constexpr double kHeldOut = 0.15;  // of many rows
/// Rows that choose nothing, by which the end of the search is measured. Of so few rows that they
/// would say little, there are none.
constexpr double kTested = 0.1;  // of many rows
constexpr double kTestedOfFew = 0.15;
constexpr std::int64_t kFewestTested = 200;
/// Most trials stop early by then.
constexpr double kUsualEpochs = 60;
/// A trial may take so much of the time of all workers.
constexpr double kMostOfTime = 0.2;
constexpr const char* kMissingCategory = "missing";
/// More categories than this take more columns than most tables have rows for.
constexpr std::int64_t kMostCategories = 64;
/// A category with fewer rows than this is rare where rows are many.
constexpr std::int64_t kFewestRowsOfCategory = 10;

std::int64_t categories_of(const ColumnReading& column) {
  return column.profile.distinct.value_or(kMostCategories + 1);
}

/// Tables of a few hundred rows have categories of a few rows that are worth keeping.
std::int64_t fewest_rows_of_category(const TableReading& table) {
  return std::clamp<std::int64_t>(table.rows / 100, 2, kFewestRowsOfCategory);
}

/// How a document names a column: by its name, where the file has names.
Json column_in(const ColumnReading& column) {
  if (column.profile.has_name)
    return column.profile.name;
  return column.index;
}

std::vector<std::string> calendar_of(const TableReading& table) {
  const std::vector<const ColumnReading*> dates = table.columns_of(ColumnUse::kDate);
  const bool has_times = std::any_of(dates.begin(), dates.end(), [](const ColumnReading* column) {
    return column->profile.times > 0;
  });
  std::vector<std::string> calendar{"day_of_week", "day_of_month", "day_of_year"};
  if (has_times)
    calendar.emplace_back("hour");
  return calendar;
}

Json columns_in(const std::vector<const ColumnReading*>& columns) {
  Json names = Json::array();
  for (const ColumnReading* column : columns)
    names.push_back(column_in(*column));
  return names;
}

Json data_of(const TableReading& table, Json data) {
  data.update(table.parameters);
  const ColumnReading& target = table.target_column();
  data["target"] = column_in(target);
  data["task"] = name_of(table.task);
  std::vector<const ColumnReading*> inputs;
  for (const ColumnReading& column : table.columns) {
    if (column.use != ColumnUse::kLeftOut && column.use != ColumnUse::kTarget)
      inputs.push_back(&column);
  }
  // A column without a name, beside others that have one, is read where it is asked for.
  const bool has_nameless = std::any_of(inputs.begin(), inputs.end(), [](const ColumnReading* one) {
    return !one->profile.has_name;
  });
  if (inputs.size() + 1 < table.columns.size() || (data.value("header", true) && has_nameless))
    data["columns"] = columns_in(inputs);
  if (const auto categories = table.columns_of(ColumnUse::kCategory); !categories.empty())
    data["categorical"] = columns_in(categories);
  if (const auto dates = table.columns_of(ColumnUse::kDate); !dates.empty()) {
    data["dates"] = columns_in(dates);
    data["calendar"] = calendar_of(table);
  } else {
    data.erase("date_format");  // of dates that are left out
  }
  if (table.has_other_marks)
    data["missing_values"] = table.missing_values;
  // Rows to predict may lack what the training rows never lacked, and have new categories.
  data["missing"] = "nan";
  data["handle_unknown"] = "missing";
  if (target.profile.missing > 0)
    data["missing_target"] = "drop_row";
  return data;
}

/// The numbers that the model gets of a column of numbers or dates. Whether one is missing is the
/// same for all of them, so the first stands for it.
std::vector<std::string> numbers_of(const ColumnReading& column, const TableReading& table) {
  if (column.use != ColumnUse::kDate)
    return {column.profile.name};
  std::vector<std::string> names{column.profile.name + ".days"};
  for (const std::string& feature : calendar_of(table)) {
    for (const std::string& part : find_calendar_feature(feature)->column_names())
      names.push_back(column.profile.name + "." + part);
  }
  return names;
}

/// A column may have the name of what a date becomes.
void expect_different_names(const TableReading& table) {
  for (const ColumnReading* date : table.columns_of(ColumnUse::kDate)) {
    for (const std::string& name : numbers_of(*date, table)) {
      for (const ColumnReading* other : table.columns_of(ColumnUse::kNumber)) {
        if (other->profile.name != name)
          continue;
        throw DataError(table.place + ": column " + quote_text(name) +
                        " has the name of what the date " + quote_text(date->profile.name) +
                        " becomes; give one of them another name, or leave one out: " +
                        option_text("drop", name));
      }
    }
  }
}

Json transforms_of(const TableReading& table) {
  Json transforms = Json::array();
  const auto categories = table.columns_of(ColumnUse::kCategory);
  Json with_missing = Json::array();
  bool has_rare = false;
  for (const ColumnReading* column : categories) {
    if (column->profile.missing > 0)
      with_missing.push_back(column->profile.name);
    has_rare = has_rare || categories_of(*column) > kMostCategories ||
               column->profile.rarest < fewest_rows_of_category(table);
  }
  if (!with_missing.empty()) {
    transforms.push_back(
        {{"use", "impute"}, {"category", kMissingCategory}, {"columns", std::move(with_missing)}});
  }
  if (has_rare) {
    transforms.push_back({{"use", "rare_categories"},
                          {"min_count", fewest_rows_of_category(table)},
                          {"max_categories", kMostCategories}});
  }
  Json indicated = Json::array();
  Json filled = Json::array();
  for (const ColumnReading& column : table.columns) {
    if (column.use != ColumnUse::kNumber && column.use != ColumnUse::kDate)
      continue;
    for (const std::string& name : numbers_of(column, table)) {
      const bool is_first = name == numbers_of(column, table).front();
      (column.profile.missing > 0 && is_first ? indicated : filled).push_back(name);
    }
  }
  const bool has_numbers = !indicated.empty() || !filled.empty();
  for (Json* columns : {&indicated, &filled}) {
    if (columns->empty())
      continue;
    Json impute{{"use", "impute"}, {"strategy", "median"}};
    if (columns == &indicated)
      impute["indicator"] = true;
    impute["columns"] = std::move(*columns);
    transforms.push_back(std::move(impute));
  }
  if (table.task == TableTask::kRegression) {
    transforms.push_back({{"use", "standardize"}, {"target", true}});
  } else if (has_numbers) {
    transforms.push_back({{"use", "standardize"}});
  }
  if (!categories.empty())
    transforms.push_back({{"use", "one_hot"}});
  return transforms;
}

/// Columns of the model, about: with missing ones counted as one each.
std::int64_t inputs_of(const TableReading& table) {
  std::int64_t inputs = 0;
  for (const ColumnReading& column : table.columns) {
    const std::int64_t indicator = column.profile.missing > 0 ? 1 : 0;
    if (column.use == ColumnUse::kCategory)
      inputs += std::min(categories_of(column), kMostCategories + 1) + indicator;
    if (column.use == ColumnUse::kNumber || column.use == ColumnUse::kDate)
      inputs += static_cast<std::int64_t>(numbers_of(column, table).size()) + indicator;
  }
  return inputs;
}

/// **Rationale:** hundreds of trials fit the held-out rows themselves where these have few of a
/// class, and models of folds are trained on most of its rows. Of 24 000 rows with 860 of one
/// class, the AUC of a held-out part was .74 where that of new rows was .68; by folds, both .697.
bool has_many_rows(const TableReading& table) {
  if (table.rows < kManyRows || table.rows > kMostFoldedRows)
    return table.rows >= kManyRows;
  const ColumnProfile& target = table.target_column().profile;
  const bool is_pair = table.task == TableTask::kClassification && target.distinct == 2;
  return !is_pair || 2 * target.rarest >= kManyRows;
}

Json validation_of(const TableReading& table) {
  if (has_many_rows(table))
    return {{"use", "hold_out"}, {"fraction", kHeldOut}, {"test_fraction", kTested}};
  // Five folds, of each class its share unless one has too few rows.
  const bool is_classes = table.task == TableTask::kClassification;
  const std::int64_t rarest = is_classes ? table.target_column().profile.rarest : kFolds;
  Json validation{{"use", "k_fold"}, {"folds", kFolds}};
  if (rarest < kFolds * (table.rows >= kFewestTested ? 2 : 1))
    validation["stratify"] = false;
  if (table.rows >= kFewestTested)
    validation["test_fraction"] = table.rows < kManyRows ? kTestedOfFew : kTested;
  return validation;
}

/// About 50 steps an epoch, in batches between 16 and 512 rows.
Json batch_sizes(const TableReading& table) {
  const auto usual = std::bit_floor(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(table.rows / 50, 32, 256)));
  return {{"log_int", {usual / 2, usual * 2}}};
}

/// Rows that the models of one trial are trained on, added up.
double trained_rows(const TableReading& table) {
  const auto rows = static_cast<double>(table.rows);
  return has_many_rows(table) ? rows * (1 - kHeldOut - kTested)
                              : rows * static_cast<double>(kFolds - 1);
}

/// Whether a trial that is trained to its end takes no more of the time than it should: a search
/// that is worth its name makes several of them.
bool suits_time(const Family& family, const TableReading& table, const DocumentOptions& options) {
  if (options.time.empty())
    return true;
  const Duration time = Duration::parse(options.time);
  if (time.unit != Duration::Unit::kSeconds)
    return true;  // an error of the document
  const double row =
      family.row_seconds + family.column_seconds * static_cast<double>(inputs_of(table));
  return trained_rows(table) * kUsualEpochs * row <= kMostOfTime * time.value * options.workers;
}

/// Of all that suit the columns: those that suit the time first.
std::vector<Family>::iterator order_by_time(std::vector<Family>& families,
                                            const TableReading& table,
                                            const DocumentOptions& options) {
  return std::stable_partition(families.begin(), families.end(), [&](const Family& family) {
    return suits_time(family, table, options);
  });
}

std::vector<Family> families_for(const TableReading& table, const Portfolio& portfolio,
                                 const DocumentOptions& options) {
  std::vector<Family> families = portfolio.families_named(options.families);
  const std::int64_t inputs = inputs_of(table);
  const auto suits = [&](const Family& family) { return inputs <= family.max_inputs; };
  const auto removed = std::stable_partition(families.begin(), families.end(), suits);
  if (removed == families.begin()) {
    throw UsageError("--families: " + families.front().name + " is for at most " +
                     std::to_string(families.front().max_inputs) +
                     " columns, and the model would have " + std::to_string(inputs));
  }
  families.erase(removed, families.end());
  return families;
}

}  // namespace

Json auto_document(const TableReading& table, Json data, const Portfolio& portfolio,
                   const DocumentOptions& options) {
  std::vector<Family> families = families_for(table, portfolio, options);
  if (options.families.empty()) {
    const auto slow = order_by_time(families, table, options);
    // The first is the quickest, whatever the time.
    families.erase(std::max(slow, families.begin() + 1), families.end());
  }
  const Json& task = portfolio.task(name_of(table.task));
  expect_different_names(table);
  Json document{{"treadle", 1}, {"name", options.name}, {"seed", options.seed}};
  if (table.needs_float64)
    document["precision"] = "float64";
  document["data"] = data_of(table, std::move(data));
  document["transforms"] = transforms_of(table);
  document.update(portfolio.document_of(families, name_of(table.task)));
  document["validation"] = validation_of(table);
  document["metrics"] = task.at("metrics");
  Json search = portfolio.search();
  search["objective"] = task.at("objective");
  search["trials"] = options.trials.value_or(options.time.empty() ? kUsualTrials : kMostTrials);
  if (!options.time.empty())
    search["budget"] = {{"time", options.time}};
  search["space"] = portfolio.space_of(families, name_of(table.task),
                                       {{"training.batch_size", batch_sizes(table)}});
  Json starts = Portfolio::starts_of(families);
  // Of few trials, those of the first families.
  while (static_cast<std::int64_t>(starts.size()) > search.at("trials").get<std::int64_t>())
    starts.erase(starts.size() - 1);
  if (!starts.empty())
    search["initial"] = std::move(starts);
  document["search"] = std::move(search);
  return document;
}

std::vector<std::string> slow_families(const TableReading& table, const Portfolio& portfolio,
                                       const DocumentOptions& options) {
  std::vector<std::string> names;
  if (!options.families.empty())
    return names;
  std::vector<Family> families = families_for(table, portfolio, options);
  const auto slow = order_by_time(families, table, options);
  for (auto family = std::max(slow, families.begin() + 1); family != families.end(); ++family)
    names.push_back(family->name);
  return names;
}

}  // namespace treadle::automl
