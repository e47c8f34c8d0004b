#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/table/date_format.h>

/// Tables as data: the meaning of columns and values, whatever file or database they come from.
namespace treadle::table {

/// A column as a document names it: by its name, or by its index from 0 (from the end when
/// negative).
using ColumnName = std::variant<std::string, std::int64_t>;

/// The treatment of a missing value.
enum class Missing { kError, kNan, kDropRow };

/// The kind of a target's columns; kAuto leaves it to the task, the loss and the data.
enum class KindAsked { kAuto, kClasses, kNumbers, kLabels, kDistribution };

/// One target as a document describes it.
struct TargetOption {
  std::string name;  ///< empty: the column's
  std::vector<ColumnName> columns;
  KindAsked kind = KindAsked::kAuto;
};

/// A column of free text as a document describes it, but for its tokenizer.
struct TextOption {
  ColumnName column;
  std::int64_t max_length = 512;  ///< longer texts are cut to so many tokens
};

/// The parameters of a table that are not about its format. Their schema is
/// framework/table/schema/table.json; the schema of a source includes it by
/// `"x-treadle-include": "table"`.
struct TableOptions {
  TableOptions() = default;
  /// Other parameters of the source are ignored here.
  explicit TableOptions(const Config& config);

  std::vector<TargetOption> targets = {{"", {std::int64_t{-1}}}};
  std::optional<std::vector<ColumnName>> columns;
  /// The columns of each input port; instead of `columns`.
  std::optional<std::map<std::string, std::vector<ColumnName>>> inputs;
  std::vector<ColumnName> categorical;
  std::vector<ColumnName> dates;
  /// The columns of free text: their tokens are inputs of their own.
  std::vector<TextOption> texts;
  /// The columns that a date becomes beside the days since 1970.
  std::vector<std::string> calendar = {"day_of_week", "day_of_year"};
  std::optional<ColumnName> weight;
  std::optional<ColumnName> group;
  std::optional<ColumnName> time;
  std::optional<ColumnName> label_end;
  /// The format of dates, times and ends of labels, but for the columns of `date_formats`.
  DateFormat date_format;
  std::map<std::string, DateFormat> date_formats;
  /// The parameter of dates that is given although no column has dates: an error where rows are
  /// read, not where a table is described. Empty: none.
  std::string unused_date_key;
  Missing missing = Missing::kError;
  bool drops_rows_without_target = false;  ///< whatever `missing` is
  /// Categories and missing values that the training data lacks are missing values, not errors.
  bool unknown_is_missing = false;
  std::vector<std::string> missing_values = {"", "NA", "NaN", "nan", "null", "?"};
  /// False: rows are read anew in each pass, in order; only a part is in memory at once.
  bool in_memory = true;

  const DateFormat& date_format_of(const std::string& column) const;

 private:
  void set_dates(const Config& config);
  void set_texts(const Config& config);
};

}  // namespace treadle::table
