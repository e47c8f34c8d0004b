#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle {

/// A value of a column and in how many rows it is.
struct CountedValue {
  std::string text;
  std::int64_t rows = 0;
};

/// What the values of a column of a table look like, before anything is decided about it.
struct ColumnProfile {
  static constexpr std::size_t kMostListed = 20;

  std::string name;
  bool has_name = true;       ///< false: `name` is made of its place
  std::int64_t missing = 0;   ///< rows without a value
  std::int64_t numbers = 0;   ///< rows with a finite number
  std::int64_t integers = 0;  ///< of these: with a whole one
  std::int64_t padded = 0;    ///< of the integers: digits behind a leading zero, "01234"
  std::int64_t dates = 0;     ///< rows with an ISO 8601 date
  std::int64_t times = 0;     ///< of these: with a time of day other than midnight
  double least = 0;           ///< of the numbers
  double greatest = 0;
  bool is_rising = false;  ///< every value is a number, and greater than the one before

  /// How many different values there are; nothing where that are more than were counted.
  std::optional<std::int64_t> distinct;
  std::int64_t rarest = 0;             ///< rows of the rarest value, where `distinct` is known
  std::vector<CountedValue> frequent;  ///< at most kMostListed, the most frequent first
  /// The same of those that are neither number nor date; of too many, of the first of them.
  std::vector<CountedValue> odd_texts;
};

/// The columns of a table, and how its text is to be read.
struct TableProfile {
  std::int64_t rows = 0;
  std::vector<ColumnProfile> columns;
  /// Texts that mark missing values, as the data reads them.
  std::vector<std::string> missing_values;
  /// Parameters that the data needs beside those it was given, because the file is of another form:
  /// {"separator": ";"}.
  nlohmann::json parameters = nlohmann::json::object();
};

/// Finds out what is in the columns of a file: `workflow-runner auto` writes documents by it.
///
/// An optional ability of a DataProvider (`provider.ask<TableProfiler>()`), before open(): only the
/// parameters that say how a file is read have an effect, not those that say what columns are for.
class TableProfiler {
 public:
  static constexpr std::string_view kInterface = "treadle.table-profiler/0";

  virtual ~TableProfiler();

  /// Reads the whole file. Throws DataError where it is no table.
  TableProfile profile() const { return do_profile(); }

 private:
  virtual TableProfile do_profile() const = 0;
};

}  // namespace treadle
