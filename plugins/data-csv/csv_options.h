#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <treadle/base/config.h>

namespace treadle::csv {

/// A column as a person names it: by its name, or by its index from 0 (from the end when negative).
using ColumnName = std::variant<std::string, std::int64_t>;

/// What to do with a value that is not there.
enum class Missing { kError, kNan, kDropRow };

/// What a target's columns are; kAuto leaves it to the task, the loss and the data.
enum class KindAsked { kAuto, kClasses, kNumbers, kLabels, kDistribution };

/// One target as a person describes it.
struct TargetOption {
  std::string name;  ///< empty: the column's
  std::vector<ColumnName> columns;
  KindAsked kind = KindAsked::kAuto;
};

/// The parameters of `csv`, as csv.schema.json describes them.
struct CsvOptions {
  CsvOptions() = default;
  explicit CsvOptions(const Config& config);

  std::filesystem::path path;
  bool header = true;
  std::int64_t skip_rows = 0;
  char separator = ',';
  char quote = '"';  ///< 0: none
  std::string encoding = "utf-8";
  std::vector<TargetOption> targets = {{"", {std::int64_t{-1}}}};
  std::optional<std::vector<ColumnName>> columns;
  /// The columns of each input port; instead of `columns`.
  std::optional<std::map<std::string, std::vector<ColumnName>>> inputs;
  std::vector<ColumnName> categorical;
  std::vector<ColumnName> dates;
  /// What dates become beside the days since 1970.
  std::vector<std::string> calendar = {"day_of_week", "day_of_year"};
  std::optional<ColumnName> weight;
  std::optional<ColumnName> group;
  std::optional<ColumnName> time;
  std::optional<ColumnName> label_end;
  Missing missing = Missing::kError;
  bool drops_rows_without_target = false;  ///< whatever `missing` is
  /// Categories and missing values that the training data lacks are missing values, not errors.
  bool unknown_is_missing = false;
  std::vector<std::string> missing_values = {"", "NA", "NaN", "nan", "null", "?"};
};

}  // namespace treadle::csv
