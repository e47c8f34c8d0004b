#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <treadle/core/data/abilities/table_profile.h>

/// Tables to documents: what `workflow-runner auto` decides, without training anything.
namespace treadle::automl {

/// What a column is taken for.
enum class ColumnUse { kTarget, kNumber, kCategory, kDate, kLeftOut };

/// "target", "number", "category", "date", "left out".
std::string_view name_of(ColumnUse use);

/// What the target is predicted as.
enum class TableTask { kClassification, kRegression };

std::string_view name_of(TableTask task);

/// What the user decided; everything else is guessed.
struct ReadingOptions {
  std::string target;                  ///< a column's name, or its index from 0; -1: the last
  std::string task = "auto";           ///< "auto", "classification" or "regression"
  std::vector<std::string> drop = {};  ///< columns to leave out
  std::map<std::string, std::string> types = {};  ///< column to "number", "category" or "date"
};

struct ColumnReading {
  ColumnProfile profile;
  std::size_t index = 0;  ///< in the file
  ColumnUse use = ColumnUse::kLeftOut;
  std::string reason;  ///< for people: "3 different texts"
};

/// A table as it will be trained on.
struct TableReading {
  std::string place;      ///< the file's name in messages
  std::int64_t rows = 0;  ///< with a target
  TableTask task = TableTask::kRegression;
  std::string task_reason;
  std::size_t target = 0;  ///< of `columns`
  std::vector<ColumnReading> columns;
  /// Texts that mark missing values: those that the data knows, and behind them others that stand
  /// in columns of numbers and dates.
  std::vector<std::string> missing_values;
  bool has_other_marks = false;
  /// A column has numbers that float32 is not enough for.
  bool needs_float64 = false;
  /// Parameters that the data needs because of the file's form: {"separator": ";"}.
  nlohmann::json parameters = nlohmann::json::object();

  const ColumnReading& target_column() const { return columns[target]; }
  std::vector<const ColumnReading*> columns_of(ColumnUse use) const;
};

/// So few rows are nothing to train and validate on.
inline constexpr std::int64_t kFewestRows = 10;
/// Whole numbers with at most so many different values are taken for classes.
inline constexpr std::int64_t kMostNumberedClasses = 20;

/// Decides what each column is. A column is left out where it cannot help: no value or only one, a
/// row number, nearly as many texts as rows. Throws UsageError for options that name what is not
/// there, and DataError where nothing can be trained: no such target, one class, too few rows, no
/// column left.
TableReading read_table(TableProfile profile, const ReadingOptions& options, std::string place);

}  // namespace treadle::automl
