#include <treadle/host/automl/table_reading.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "option_text.h"
#include "text_forms.h"

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

/// "3 different texts", "very many different texts".
std::string counted_different(const std::optional<std::int64_t>& count, const std::string& what) {
  if (!count)
    return "very many different " + what + "s";
  return counted(*count, what, "different " + what + "s");
}

std::vector<std::string> names_of(const TableProfile& profile) {
  std::vector<std::string> names;
  for (const ColumnProfile& column : profile.columns)
    names.push_back(column.name);
  return names;
}

bool has_header(const TableProfile& profile) {
  return std::any_of(profile.columns.begin(), profile.columns.end(),
                     [](const ColumnProfile& column) { return column.has_name; });
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
                   (has_header(profile) ? "" : "; the first line is a row, not a header") +
                   "; the columns are " + name_list(names) + did_you_mean(named, names));
}

std::int64_t values_of(const ColumnProfile& column, std::int64_t rows) {
  return rows - column.missing;
}

bool is_mark(const std::string& text) {
  return std::find(kMissingMarks.begin(), kMissingMarks.end(), text) != kMissingMarks.end();
}

/// The texts that are neither numbers, nor dates, nor marks of missing values: of many, the most
/// frequent.
std::vector<std::string> plain_texts_of(const ColumnProfile& column) {
  std::vector<std::string> texts;
  for (const CountedValue& text : column.odd_texts) {
    if (!is_mark(text.text))
      texts.push_back(text.text);
  }
  return texts;
}

/// Of a column of numbers or dates but for a few texts, which are not known to mark missing values:
/// "numbers but for 1 row, which has "Total"; …", with what to do. Empty for other columns.
/// `missing` are the marks of the whole table, which those of --set take the place of.
std::string stray_hint(const ColumnProfile& column, std::int64_t values,
                       const std::vector<std::string>& missing) {
  constexpr double kMostStray = 0.1;
  constexpr std::size_t kMostTexts = 5;
  const std::vector<std::string> texts = plain_texts_of(column);
  const std::int64_t stray = values - std::max(column.numbers, column.dates);
  if (texts.empty() || texts.size() > kMostTexts ||
      static_cast<double>(stray) > kMostStray * static_cast<double>(values)) {
    return {};
  }
  nlohmann::json marks = missing;
  for (const std::string& text : texts)
    marks.push_back(text);
  return std::string(column.numbers >= column.dates ? "numbers" : "dates") + " but for " +
         counted(stray, "row, which has ", "rows, which have ") + quoted_list(texts) +
         "; remove such rows, or take the text for missing with --set data.missing_values='" +
         marks.dump() + "'";
}

/// "; "Yes" and "yes" differ in case only": two categories that may be meant as one.
std::string case_remark(const ColumnProfile& column) {
  std::map<std::string, std::string> seen;  // by their lower case
  for (const std::string& text : plain_texts_of(column)) {
    std::string lower = text;
    for (char& c : lower)
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto [other, is_new] = seen.emplace(std::move(lower), text);
    if (!is_new)
      return "; " + quote_text(other->second) + " and " + quote_text(text) + " differ in case only";
  }
  return {};
}

/// What the texts of a column are for people, and what to do about it; empty for mere texts.
std::string hint_about(const ColumnProfile& column, std::int64_t values,
                       const std::vector<std::string>& missing) {
  const std::string form = form_hint(plain_texts_of(column));
  return form.empty() ? stray_hint(column, values, missing) : form;
}

/// What is in a column that is not of numbers or dates, as it should be.
std::string described_texts(const ColumnProfile& column) {
  const std::vector<std::string> texts = plain_texts_of(column);
  if (const std::string hint = form_hint(texts); !hint.empty())
    return hint;
  if (!texts.empty())
    return "texts such as " + quote_text(texts.front());
  return column.dates > 0 ? "dates" : "numbers";
}

/// Whether a model that computes in T can tell a column's numbers apart: they and their distances
/// from the mean are finite, so is one over their deviation, and their range has enough of T's
/// numbers. Of nanoseconds since 1970, float32 has one in two minutes.
template <typename T>
bool can_compute_with(const ColumnProfile& column) {
  using Limits = std::numeric_limits<T>;
  constexpr double kFewestSteps = 1024;
  // Variances are float64 in any case.
  constexpr double kLargest = std::min<double>(Limits::max() / 4, 1e150);
  constexpr double kSmallestRange = std::max<double>(Limits::min() * kFewestSteps, 1e-150);
  const double largest = std::max(std::abs(column.least), std::abs(column.greatest));
  if (largest > kLargest)
    return false;
  const double range = column.greatest - column.least;
  const auto nearest = static_cast<T>(largest);
  const double step = static_cast<double>(std::nextafter(nearest, Limits::infinity()) - nearest);
  const bool are_exact = column.integers == column.numbers && step <= 1;
  return range == 0 || are_exact || (range >= kSmallestRange && range >= kFewestSteps * step);
}

/// Why float64 cannot, and what to do.
std::string beyond_float64(const ColumnProfile& column) {
  const double largest = std::max(std::abs(column.least), std::abs(column.greatest));
  if (largest > 1)
    return largest > 1e100 ? "too large to compute with; divide them"
                           : "too close together for float64; subtract what they have in common";
  return "too small to compute with; multiply them";
}

/// The marks in a column that is `kind` otherwise; nothing where other texts are in it, too.
std::optional<std::vector<std::string>> marks_in(const ColumnProfile& column, std::int64_t others) {
  std::vector<std::string> marks;
  std::int64_t rows = 0;
  for (const CountedValue& text : column.odd_texts) {
    if (!is_mark(text.text))
      return std::nullopt;
    marks.push_back(text.text);
    rows += text.rows;
  }
  if (rows != others)
    return std::nullopt;
  return marks;
}

/// "1 to 5"; of numbers that differ in their last digits only, all digits.
std::string range_of(const ColumnProfile& column) {
  const auto text = [](double number, int digits) {
    char written[32];
    const auto end = std::to_chars(written, written + sizeof written, number,
                                   std::chars_format::general, digits);
    return std::string(written, end.ptr);
  };
  const auto range = [&](int digits) {
    return std::pair(text(column.least, digits), text(column.greatest, digits));
  };
  auto [least, greatest] = range(6);
  if (least == greatest)
    std::tie(least, greatest) = range(std::numeric_limits<double>::max_digits10);
  return least + " to " + greatest;
}

/// "whole numbers, 1 to 5".
std::string described_numbers(const ColumnProfile& column) {
  return (column.integers == column.numbers ? "whole numbers, " : "numbers, ") + range_of(column);
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
  void guess_numbers(ColumnReading& column);
  void guess_category(ColumnReading& column, const std::string& what, const std::string& about);
  bool numbers_rows(const ColumnProfile& profile) const;
  std::string expect_precision(const ColumnProfile& profile, const std::string& what);
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
  if (profile_.columns.size() == 1) {
    fail("there is one column only, " + quote_text(profile_.columns.front().name) +
         ", and nothing to predict it from; if the columns are separated by something else than a "
         "comma, a semicolon, a tab or \"|\", add --set data.separator=CHARACTER");
  }
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
    bool may_help = false;  // a column of several values
    for (const ColumnReading& column : reading_.columns) {
      if (column.use != ColumnUse::kLeftOut)
        continue;
      reasons += "; " + quote_text(column.profile.name) + ": " + column.reason;
      may_help = may_help || column.profile.distinct.value_or(2) > 1;
    }
    fail("no column is left to predict " + quote_text(reading_.target_column().profile.name) +
         " from" + reasons +
         (!may_help ? "" : ". To use one as it is, say what it is: --types COLUMN=category"));
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
  target.reason.clear();
  if (reading_.task == TableTask::kRegression)
    target.reason = expect_precision(profile, "the target " + quote_text(profile.name));
  if (profile.missing > 0) {
    target.reason += std::string(target.reason.empty() ? "" : "; ") +
                     counted(profile.missing, "row", "rows") + " without it " +
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
      fail("the target " + quote_text(target.name) + " has " + described_texts(target) +
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
  const std::string hint = hint_about(target, reading_.rows, reading_.missing_values);
  if (is_numbers && !is_whole) {
    fail("the target " + quote_text(target.name) +
         " has numbers with fractions, and classes are texts or whole numbers; use --task "
         "regression");
  }
  if (!target.distinct || 2 * *target.distinct > reading_.rows) {
    fail("the target " + quote_text(target.name) + " has " +
         counted_different(target.distinct, "value") + " in " +
         counted(reading_.rows, "row", "rows") + "; a class needs several rows to learn from. " +
         (!hint.empty() ? "They are " + hint
          : target.dates > 0
              ? "Dates cannot be predicted; numbers can, such as days from another date"
              : "Is it the right column? For numbers, use --task regression"));
  }
  decide(TableTask::kClassification,
         options_.task == "classification" ? "as --task says"
         : is_numbers                      ? counted_different(target.distinct, "whole number") +
                            "; for numbers, use --task regression"
                      : counted_different(target.distinct, "text") +
                            (hint.empty() ? "" : ": " + hint) + case_remark(target));
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
  const auto fewest = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(
          std::ceil(kFewestValuesPerRow * static_cast<double>(profile_.rows))),
      2, kFewestValues);
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
    if (!profile.distinct && profile.numbers == 0)
      fail("column " + quote_text(profile.name) + " has too many different texts for a category");
    column.use = ColumnUse::kCategory;
    column.reason = "as --types says";
    return;
  }
  const ColumnUse use = type == "date" ? ColumnUse::kDate : ColumnUse::kNumber;
  if (!take_for(column, use)) {
    fail("column " + quote_text(profile.name) + " is to be a " + type + ", but has " +
         described_texts(profile) +
         (type == "date" ? "; dates are written as 2024-02-29 or 2024-02-29T12:00" : ""));
  }
  column.reason.insert(0, "as --types says");
  if (use == ColumnUse::kNumber) {
    const std::string precision = expect_precision(profile, "column " + quote_text(profile.name));
    column.reason += precision.empty() ? "" : "; " + precision;
  }
}

void Reader::guess(ColumnReading& column) {
  const ColumnProfile& profile = column.profile;
  const std::int64_t values = values_of(profile, profile_.rows);
  if (numbers_rows(profile))
    return leave_out(column, "it has no name and numbers the rows");
  const bool counts_rows =
      profile.is_rising && profile.missing == 0 && profile.integers == values &&
      profile.greatest - profile.least == static_cast<double>(profile_.rows - 1);
  if (counts_rows)
    return leave_out(column, "it counts the rows");
  if (take_for(column, ColumnUse::kNumber))
    return guess_numbers(column);
  if (take_for(column, ColumnUse::kDate)) {
    column.reason = (profile.times > 0 ? "dates with a time of day" : "dates") + column.reason;
    return;
  }
  const std::string hint = hint_about(profile, values, reading_.missing_values);
  guess_category(column, "text",
                 !hint.empty()                         ? hint
                 : profile.numbers + profile.dates > 0 ? "some of them are numbers or dates"
                                                       : "");
  if (column.use == ColumnUse::kCategory)
    column.reason += case_remark(profile);
}

/// A column without a name beside others that have one: how some programs write the row's number,
/// and others shuffle the rows afterwards.
bool Reader::numbers_rows(const ColumnProfile& profile) const {
  if (!has_header(profile_) || profile.has_name || profile.integers < profile_.rows)
    return false;
  const auto rows = static_cast<double>(profile_.rows);
  const bool are_different = profile.distinct ? *profile.distinct == profile_.rows
                                              : profile.greatest - profile.least >= rows - 1;
  return profile.is_rising || (profile.least >= 0 && are_different);
}

/// Of a column of numbers, but for the marks that its reason names.
void Reader::guess_numbers(ColumnReading& column) {
  const ColumnProfile& profile = column.profile;
  const std::string marks = std::exchange(column.reason, "");
  const std::string numbers = described_numbers(profile);
  const std::string as_numbers = option_text("types", profile.name, "number");
  const bool are_whole = profile.integers == profile.numbers;
  if (are_whole && profile.padded > 0) {
    guess_category(column, "code",
                   "they have leading zeros; for numbers, use " + as_numbers + marks);
  } else if (can_compute_with<float>(profile)) {
    column.reason = numbers + marks;
  } else if (!can_compute_with<double>(profile)) {
    leave_out(column, numbers + ", " + beyond_float64(profile));
  } else if (are_whole && profile.distinct.value_or(profile.numbers) >= profile.numbers) {
    leave_out(column, numbers +
                          ", for which float32 is not enough: identifiers? To use them, in "
                          "float64: " +
                          as_numbers);
  } else {
    column.reason = numbers + marks + "; " + expect_precision(profile, "");
  }
}

/// `about` is what there is to say beside their number.
void Reader::guess_category(ColumnReading& column, const std::string& what,
                            const std::string& about) {
  const ColumnProfile& profile = column.profile;
  const std::int64_t values = values_of(profile, profile_.rows);
  const std::string count = counted_different(profile.distinct, what);
  if (!profile.distinct ||
      static_cast<double>(*profile.distinct) > kMostTextsPerRow * static_cast<double>(values)) {
    return leave_out(column, count + " in " + counted(values, "row", "rows") + ": " +
                                 (about.empty() ? "names or free text" : about));
  }
  column.use = ColumnUse::kCategory;
  column.reason = count + (about.empty() ? "" : ": " + about);
}

/// Sees that the training computes in numbers that can tell the column's apart. Returns what there
/// is to say about it: nothing for float32. `what` names the column in the error.
std::string Reader::expect_precision(const ColumnProfile& profile, const std::string& what) {
  if (can_compute_with<float>(profile))
    return {};
  if (!can_compute_with<double>(profile))
    fail(what + " has numbers " + beyond_float64(profile));
  reading_.needs_float64 = true;
  return "float32 is not enough for them, so all is computed in float64";
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
