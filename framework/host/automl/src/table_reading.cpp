#include <treadle/host/automl/table_reading.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::automl {
namespace {

/// What programs and people write where a number or a date is missing.
constexpr std::array kMissingMarks = {
    "-",    "--",   ".",   "n/a",  "N/A",     "#N/A",    "#NA",     "None",    "none",
    "NULL", "Null", "Nan", "NAN",  "nil",     "unknown", "Unknown", "UNKNOWN", "missing",
    "inf",  "-inf", "Inf", "-Inf", "Missing", "MISSING", "(null)"};

/// A column of texts in which most rows have one of their own identifies rows.
constexpr double kMostTextsPerRow = 0.5;
/// A column with fewer values than this share of the rows, and than kFewestValues, is left out.
constexpr double kFewestValuesPerRow = 0.01;
constexpr std::int64_t kFewestValues = 10;

std::string counted(std::int64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::vector<std::string> names_of(const TableProfile& profile) {
  std::vector<std::string> names;
  for (const ColumnProfile& column : profile.columns)
    names.push_back(column.name);
  return names;
}

/// The column that a text names: by its name, or by its index from either end.
std::size_t find_column(const TableProfile& profile, const std::string& named,
                        const std::string& option, const std::string& place) {
  const std::vector<std::string> names = names_of(profile);
  const auto count = std::count(names.begin(), names.end(), named);
  if (count > 1) {
    throw DataError(place + ": there are " + std::to_string(count) + " columns " +
                    quote_text(named) + "; give each a name of its own");
  }
  if (count == 1)
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), named) - names.begin());
  std::int64_t index = 0;
  const char* const end = named.data() + named.size();
  const auto read = std::from_chars(named.data(), end, index);
  const auto columns = static_cast<std::int64_t>(names.size());
  const bool is_index = read.ec == std::errc() && read.ptr == end && !named.empty();
  if (is_index && index >= -columns && index < columns)
    return static_cast<std::size_t>(index < 0 ? index + columns : index);
  throw UsageError(place + ": there is no column " + quote_text(named) + " for --" + option +
                   "; the columns are " + name_list(names) + did_you_mean(named, names));
}

std::int64_t values_of(const ColumnProfile& column, std::int64_t rows) {
  return rows - column.missing;
}

/// The marks in a column that is `kind` otherwise; nothing where other texts are in it, too.
std::optional<std::vector<std::string>> marks_in(const ColumnProfile& column, std::int64_t others) {
  std::vector<std::string> marks;
  std::int64_t rows = 0;
  for (const CountedValue& text : column.odd_texts) {
    if (std::find(kMissingMarks.begin(), kMissingMarks.end(), text.text) == kMissingMarks.end())
      return std::nullopt;
    marks.push_back(text.text);
    rows += text.rows;
  }
  if (rows != others)
    return std::nullopt;
  return marks;
}

std::string range_of(const ColumnProfile& column) {
  const auto text = [](double number) {
    char digits[32];
    const auto written =
        std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6);
    return std::string(digits, written.ptr);
  };
  return text(column.least) + " to " + text(column.greatest);
}

class Reader {
 public:
  Reader(TableProfile profile, const ReadingOptions& options, std::string place)
      : profile_(std::move(profile)), options_(options) {
    reading_.place = std::move(place);
    reading_.parameters = profile_.parameters;
    reading_.missing_values = profile_.missing_values;
  }

  TableReading read();

 private:
  void expect_names() const;
  void read_options();
  void read_target();
  void guess_task(const ColumnProfile& target);
  void read_feature(ColumnReading& column);
  void read_as(ColumnReading& column, const std::string& type);
  void guess(ColumnReading& column);
  bool take_for(ColumnReading& column, ColumnUse use);
  void add_marks(const std::vector<std::string>& marks);
  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(reading_.place + ": " + message);
  }
  static void leave_out(ColumnReading& column, std::string reason) {
    column.use = ColumnUse::kLeftOut;
    column.reason = std::move(reason);
  }

  TableProfile profile_;
  const ReadingOptions& options_;
  std::set<std::size_t> dropped_;
  std::map<std::size_t, std::string> types_;
  TableReading reading_;
};

void Reader::expect_names() const {
  std::set<std::string> names;
  for (const ColumnProfile& column : profile_.columns) {
    if (!names.insert(column.name).second) {
      fail("two columns are named " + quote_text(column.name) +
           "; give each a name of its own, or, if the file has no header line, add --set "
           "data.header=false");
    }
  }
}

void Reader::read_options() {
  reading_.target = find_column(profile_, options_.target, "target", reading_.place);
  for (const std::string& name : options_.drop)
    dropped_.insert(find_column(profile_, name, "drop", reading_.place));
  for (const auto& [name, type] : options_.types)
    types_[find_column(profile_, name, "types", reading_.place)] = type;
  const auto is_used = [&](const auto& columns) { return columns.contains(reading_.target); };
  if (is_used(dropped_) || is_used(types_)) {
    throw UsageError(quote_text(profile_.columns[reading_.target].name) +
                     " is the target; --drop and --types are about the other columns, --task says "
                     "what the target is");
  }
}

TableReading Reader::read() {
  expect_names();
  read_options();
  for (std::size_t i = 0; i < profile_.columns.size(); ++i)
    reading_.columns.push_back({profile_.columns[i], i, ColumnUse::kLeftOut, ""});
  read_target();
  for (ColumnReading& column : reading_.columns) {
    if (column.index != reading_.target)
      read_feature(column);
  }
  const bool has_feature =
      std::any_of(reading_.columns.begin(), reading_.columns.end(), [](const ColumnReading& one) {
        return one.use != ColumnUse::kLeftOut && one.use != ColumnUse::kTarget;
      });
  if (!has_feature) {
    std::string reasons;
    for (const ColumnReading& column : reading_.columns) {
      if (column.use == ColumnUse::kLeftOut)
        reasons += "; " + quote_text(column.profile.name) + ": " + column.reason;
    }
    fail("no column is left to predict " + quote_text(reading_.target_column().profile.name) +
         " from" + reasons +
         (reasons.empty() ? "" : ". To use one, say what it is: --types COLUMN=category"));
  }
  return std::move(reading_);
}

void Reader::read_target() {
  ColumnReading& target = reading_.columns[reading_.target];
  const ColumnProfile& profile = target.profile;
  // Marks of missing values among numbers; among texts they may be a class.
  if (options_.task != "classification")
    take_for(target, ColumnUse::kNumber);
  const std::string marks = target.reason;
  target.use = ColumnUse::kTarget;
  reading_.rows = values_of(profile, profile_.rows);
  if (profile_.rows == 0)
    fail("there is no row");
  if (reading_.rows == 0)
    fail("no row has a value of the target " + quote_text(profile.name));
  if (reading_.rows < kFewestRows) {
    fail(counted(reading_.rows, "row has", "rows have") + " a value of the target " +
         quote_text(profile.name) + "; at least " + std::to_string(kFewestRows) +
         " are needed, to train on some and validate with the others");
  }
  if (profile.distinct == 1) {
    fail("the target " + quote_text(profile.name) + " is " +
         quote_text(profile.frequent.front().text) +
         " in every row; there is nothing to learn from one value");
  }
  guess_task(profile);
  if (profile.missing > 0) {
    target.reason = counted(profile.missing, "row", "rows") + " without it " +
                    (profile.missing == 1 ? "is" : "are") + " left out" + marks;
  }
}

void Reader::guess_task(const ColumnProfile& target) {
  const bool is_numbers = target.numbers == reading_.rows;
  const bool is_whole = target.integers == reading_.rows;
  const auto decide = [&](TableTask task, std::string reason) {
    reading_.task = task;
    reading_.task_reason = std::move(reason);
  };
  if (options_.task == "regression") {
    if (!is_numbers) {
      fail("the target " + quote_text(target.name) + " has texts such as " +
           quote_text(target.odd_texts.empty() ? "a date" : target.odd_texts.front().text) +
           "; --task regression needs numbers");
    }
    return decide(TableTask::kRegression, "as --task says");
  }
  const bool are_few = target.distinct && *target.distinct <= kMostNumberedClasses &&
                       2 * *target.distinct <= reading_.rows;
  if (options_.task == "auto" && is_numbers && !(is_whole && are_few)) {
    return decide(TableTask::kRegression,
                  is_whole ? "whole numbers, many of them different" : "numbers with fractions");
  }
  const std::string classes = target.distinct ? std::to_string(*target.distinct) : "very many";
  if (is_numbers && !is_whole) {
    fail("the target " + quote_text(target.name) +
         " has numbers with fractions, and classes are texts or whole numbers; use --task "
         "regression");
  }
  if (!target.distinct || 2 * *target.distinct > reading_.rows) {
    fail("the target " + quote_text(target.name) + " has " + classes + " different values in " +
         counted(reading_.rows, "row", "rows") +
         "; a class needs several rows to learn from. Is it the right column? For numbers, use "
         "--task regression");
  }
  decide(TableTask::kClassification,
         options_.task == "classification" ? "as --task says"
         : is_numbers ? classes + " different whole numbers; for numbers, use --task regression"
                      : classes + " different texts");
}

void Reader::add_marks(const std::vector<std::string>& marks) {
  for (const std::string& mark : marks) {
    std::vector<std::string>& all = reading_.missing_values;
    if (std::find(all.begin(), all.end(), mark) == all.end())
      all.push_back(mark);
    reading_.has_other_marks = true;
  }
}

void Reader::read_feature(ColumnReading& column) {
  const ColumnProfile& profile = column.profile;
  if (dropped_.contains(column.index))
    return leave_out(column, "as --drop says");
  const std::int64_t values = values_of(profile, profile_.rows);
  if (values == 0)
    return leave_out(column, "no row has a value");
  if (const auto type = types_.find(column.index); type != types_.end())
    return read_as(column, type->second);
  const auto fewest = std::min<std::int64_t>(
      kFewestValues, static_cast<std::int64_t>(
                         std::ceil(kFewestValuesPerRow * static_cast<double>(profile_.rows))));
  if (profile.distinct == 1 && profile.missing == 0) {
    return leave_out(column, quote_text(profile.frequent.front().text) + " in every row");
  }
  if (values < fewest)
    return leave_out(column, "only " + counted(values, "row has", "rows have") + " a value");
  guess(column);
}

/// Whether the column is dates, or numbers, but for marks of missing values.
bool Reader::take_for(ColumnReading& column, ColumnUse use) {
  const ColumnProfile& profile = column.profile;
  const std::int64_t fitting = use == ColumnUse::kDate ? profile.dates : profile.numbers;
  const std::int64_t others = values_of(profile, profile_.rows) - fitting;
  const auto marks = marks_in(profile, others);
  if (fitting == 0 || (others > 0 && !marks))
    return false;
  column.use = use;
  if (others > 0) {
    add_marks(*marks);
    column.reason =
        "; " + quoted_list(*marks) + (marks->size() == 1 ? " is" : " are") + " taken for missing";
    column.profile.missing += others;
  }
  return true;
}

void Reader::read_as(ColumnReading& column, const std::string& type) {
  const ColumnProfile& profile = column.profile;
  if (type == "category") {
    if (!profile.distinct && profile.odd_texts.empty() && profile.numbers == 0)
      fail("column " + quote_text(profile.name) + " has too many different texts for a category");
    column.use = ColumnUse::kCategory;
    column.reason = "as --types says";
    return;
  }
  const ColumnUse use = type == "date" ? ColumnUse::kDate : ColumnUse::kNumber;
  if (!take_for(column, use)) {
    const bool has_text = !profile.odd_texts.empty();
    fail("column " + quote_text(profile.name) + " is to be a " + type + ", but has " +
         (has_text            ? "texts such as " + quote_text(profile.odd_texts.front().text)
          : profile.dates > 0 ? std::string("dates")
                              : std::string("numbers")) +
         (type == "date" ? "; dates are written as 2024-02-29 or 2024-02-29T12:00" : ""));
  }
  column.reason = "as --types says" + column.reason;
}

void Reader::guess(ColumnReading& column) {
  const ColumnProfile& profile = column.profile;
  const std::int64_t values = values_of(profile, profile_.rows);
  // Beside others that have one, which is how some programs write the row's number.
  const bool has_header = std::any_of(profile_.columns.begin(), profile_.columns.end(),
                                      [](const ColumnProfile& one) { return one.has_name; });
  if (has_header && !profile.has_name && profile.is_rising && profile.integers == values) {
    return leave_out(column, "it has no name and counts the rows");
  }
  const bool counts_rows =
      profile.is_rising && profile.missing == 0 && profile.integers == values &&
      profile.greatest - profile.least == static_cast<double>(profile_.rows - 1);
  if (counts_rows)
    return leave_out(column, "it counts the rows");
  if (take_for(column, ColumnUse::kNumber)) {
    column.reason = (profile.integers == profile.numbers ? "whole numbers, " : "numbers, ") +
                    range_of(profile) + column.reason;
    return;
  }
  if (take_for(column, ColumnUse::kDate)) {
    column.reason = (profile.times > 0 ? "dates with a time of day" : "dates") + column.reason;
    return;
  }
  if (!profile.distinct ||
      static_cast<double>(*profile.distinct) > kMostTextsPerRow * static_cast<double>(values)) {
    return leave_out(
        column, (profile.distinct ? std::to_string(*profile.distinct) : std::string("very many")) +
                    " different texts in " + counted(values, "row", "rows") +
                    ": names or free text");
  }
  column.use = ColumnUse::kCategory;
  column.reason = counted(*profile.distinct, "text", "different texts") +
                  (profile.numbers + profile.dates > 0 ? ", some of them numbers or dates" : "");
}

}  // namespace

std::string_view name_of(ColumnUse use) {
  constexpr std::array<std::string_view, 5> kNames{"target", "number", "category", "date",
                                                   "left out"};
  return kNames[static_cast<std::size_t>(use)];
}

std::string_view name_of(TableTask task) {
  return task == TableTask::kClassification ? "classification" : "regression";
}

std::vector<const ColumnReading*> TableReading::columns_of(ColumnUse use) const {
  std::vector<const ColumnReading*> chosen;
  for (const ColumnReading& column : columns) {
    if (column.use == use)
      chosen.push_back(&column);
  }
  return chosen;
}

TableReading read_table(TableProfile profile, const ReadingOptions& options, std::string place) {
  return Reader(std::move(profile), options, std::move(place)).read();
}

}  // namespace treadle::automl
