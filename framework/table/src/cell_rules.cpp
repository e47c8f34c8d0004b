#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include <treadle/base/calendar.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/time_text.h>

#include <treadle/table/number_text.h>

#include "table_rows.h"

namespace treadle::table {
namespace {

using Purpose = OpenRequest::Purpose;

constexpr double kSecondsOfDay = 86400;

}  // namespace

void TableRows::check_distributions() {
  constexpr double kTolerance = 1e-3;
  for (std::size_t t = 0; t < target_reads_.size(); ++t) {
    if (target_reads_[t] != Reads::kTargetShare || has_row_problems())
      continue;
    double sum = 0;
    for (std::size_t i = 0; i < parsed_.target_numbers[t].width; ++i)
      sum += rows_[layout_.ports.size() + t][i];
    if (std::abs(sum - 1) <= kTolerance)
      continue;
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", sum);
    row_problems_.push_back(place() + ": the distribution " + quote_text(layout_.targets[t].name) +
                            " sums to " + text + "; its columns must sum to 1 in each row");
  }
}

bool TableRows::is_missing(std::string_view text) const {
  if (std::find(options_.missing_values.begin(), options_.missing_values.end(), text) !=
      options_.missing_values.end()) {
    return true;
  }
  double value = 0;
  return !missing_numbers_.empty() && read_whole_number(text, value) && is_missing_number(value);
}

void TableRows::row_problem(std::size_t column, const std::string& message) {
  if (row_problems_.size() == RowProblems::kMostListed || problems_.is_full()) {
    ++unlisted_;
    return;
  }
  row_problems_.push_back(place() + ": column " + quote_text(names_[column]) + ": " + message);
}

void TableRows::take(std::size_t column, std::string_view text) {
  if (fields_[column].reads != Reads::kBoth) {
    take_as(column, fields_[column], text);
    return;
  }
  take_as(column, twice_[column].first, text);
  take_as(column, twice_[column].second, text);
}

void TableRows::take_as(std::size_t column, FieldReader& reader, std::string_view text) {
  if (is_missing(text)) {
    if (reader.reads != Reads::kNothing)
      take_missing(column, reader, text);
    return;
  }
  if (reader.reads == Reads::kTargetByLabel)
    decide_target(column, reader, text);
  double value = 0;
  switch (reader.reads) {
    case Reads::kNumber:
    case Reads::kTargetNumber:
      if (take_number(column, reader, text, value))
        place_of(reader) = value;
      break;
    case Reads::kTargetLabel:
      if (!take_number(column, reader, text, value))
        break;
      if (value != 0 && value != 1)
        row_problem(column, "a label must be 0 or 1, got " + quote_text(text));
      place_of(reader) = value;
      break;
    case Reads::kTargetShare:
      if (!take_number(column, reader, text, value))
        break;
      if (value < 0)
        row_problem(column, "a probability must be >= 0, got " + quote_text(text));
      place_of(reader) = value;
      break;
    case Reads::kWeight:
      if (!take_number(column, reader, text, value))
        break;
      if (value < 0)
        row_problem(column, "a weight must be >= 0, got " + quote_text(text));
      weight_ = value;
      break;
    case Reads::kCategory:
      take_category(column, reader, text);
      break;
    case Reads::kDate: {
      Clock clock;
      std::string problem;
      const DateFormat& format = *date_formats_[column];
      if (format.read(text, clock, &problem)) {
        take_date(reader, clock);
      } else if (!problem.empty()) {
        row_problem(column, problem);
      } else {
        const std::string likely = likely_date_format(text);
        row_problem(column, "expected " + format.expected() + ", got " + quote_text(text) +
                                (known_ != nullptr ? ""
                                 : likely.empty()  ? "; list the column in \"categorical\" instead"
                                                   : "; set \"date_format\", to " +
                                                        quote_text(likely) + " perhaps"));
      }
      break;
    }
    case Reads::kTargetClass:
      take_class(column, reader, text);
      break;
    case Reads::kGroup:
      // Groups are as many as there are things that have more than one row.
      group_ = parsed_.group_names.find(text).value_or(-1);
      if (group_ < 0 || known_ == nullptr)
        group_ = parsed_.group_names.add(text);
      has_groups_ = true;
      break;
    case Reads::kTime:
    case Reads::kLabelEnd: {
      Clock clock;
      std::string problem;
      const DateFormat& format = *date_formats_[column];
      const bool is_date = format.read(text, clock, &problem);
      if (!problem.empty()) {
        row_problem(column, problem);
        break;
      }
      const bool is_number = !is_date && format.is_iso() &&
                             read_whole_number(text, clock.seconds) && !std::isinf(clock.seconds);
      take_clock(column, text, clock, is_date, is_number);
      break;
    }
    case Reads::kNothing:
    case Reads::kTargetByLabel:
    case Reads::kBoth:
      break;
  }
}

void TableRows::take_missing(std::size_t column, const FieldReader& reader, std::string_view text) {
  const Reads reads = reader.reads;
  const std::string got = text.empty() ? "" : " (" + quote_text(text) + ")";
  const bool is_feature =
      reads == Reads::kNumber || reads == Reads::kCategory || reads == Reads::kDate;
  constexpr const char* kDropRow = "; \"missing\": \"drop_row\" leaves such rows out";
  constexpr const char* kImpute = ", \"nan\" hands them to the transform \"impute\"";
  constexpr const char* kTrainedWithout =
      ", and the model was trained without missing values. Leave the row out, or train with "
      "\"missing\": \"nan\" and the transform \"impute\"";
  const bool is_let_pass =
      is_feature && (request_.missing_inputs || (known_ != nullptr && options_.unknown_is_missing));
  if (is_target(reads) && options_.drops_rows_without_target) {
    drop_ = true;
    return;
  }
  switch (is_let_pass ? Missing::kNan : options_.missing) {
    case Missing::kDropRow:
      if (request_.purpose == Purpose::kPredict) {
        row_problem(column, "the value is missing" + got +
                                "; a row to predict cannot be dropped, train with \"missing\": "
                                "\"nan\" and the transform \"impute\"");
      }
      drop_ = request_.purpose != Purpose::kPredict;
      return;
    case Missing::kError:
      row_problem(column, "the value is missing" + got +
                              (known_ == nullptr ? kDropRow + std::string(is_feature ? kImpute : "")
                               : is_feature      ? kTrainedWithout
                                                 : ""));
      return;
    case Missing::kNan:
      break;
  }
  if (!is_feature) {
    row_problem(column, "the value is missing" + got +
                            "; \"missing\": \"nan\" is for columns to predict from only" +
                            (is_target(reads) && known_ == nullptr
                                 ? "; \"missing_target\": \"drop_row\" leaves such rows out"
                                 : ""));
    return;
  }
  if (known_ != nullptr && !known_->columns[reader.feature].may_be_missing && !is_let_pass) {
    row_problem(column, "the value is missing" + got +
                            ", which never happened in the training data. Leave the row out, or "
                            "train with \"handle_unknown\": \"missing\"");
    return;
  }
  parsed_.has_missing[reader.feature] = 1;
  if (reads == Reads::kCategory) {
    category_rows_[reader.part][reader.slot] = -1;
  } else if (reads == Reads::kDate) {
    std::ranges::fill(date_of(reader), std::numeric_limits<double>::quiet_NaN());
  } else {
    place_of(reader) = std::numeric_limits<double>::quiet_NaN();
  }
}

bool TableRows::take_number(std::size_t column, const FieldReader& reader, std::string_view text,
                            double& value) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const Reads reads = reader.reads;
  if (is_infinity(text)) {
    row_problem(column, "got " + quote_text(text) + ": infinity cannot be trained on");
    return false;
  }
  if (!read_whole_number(text, value)) {
    std::string remedy;
    if (has_decimal_comma(text)) {
      remedy = "; " + source_.remedy_for_comma(known_ != nullptr);
    } else if (known_ != nullptr && reads == Reads::kNumber) {
      remedy = remedy_for_text(reader);
    } else if (known_ == nullptr && reads == Reads::kNumber) {
      remedy = std::count(text.begin(), text.end(), ' ') > 1
                   ? "; name the column in \"texts\", or the text in \"missing_values\""
                   : "; list the column in \"categorical\" or the text in \"missing_values\"";
    } else if (known_ == nullptr && reads == Reads::kTargetNumber) {
      remedy = request_.task == Task::kRegression
                   ? "; the task \"regression\" needs numbers"
                   : "; if these are classes, set \"task\": \"classification\" in \"data\"";
    }
    row_problem(column, "expected a number, got " + quote_text(text) + remedy);
    return false;
  }
  if (std::abs(value) > kLargest) {
    row_problem(column, "got " + quote_text(text) + ", which is too large for float64");
    return false;
  }
  return true;
}

std::string TableRows::remedy_for_text(const FieldReader& reader) const {
  const bool may_be_missing =
      request_.missing_inputs || options_.unknown_is_missing ||
      (options_.missing == Missing::kNan && known_->columns[reader.feature].may_be_missing);
  if (may_be_missing) {
    return "; if it stands for a missing value, write one of " +
           quoted_list(options_.missing_values) + ", the \"missing_values\" of the training";
  }
  return "; the model was trained without missing values in this column, so leave the row out, or "
         "train with the text in \"missing_values\"";
}

std::int64_t TableRows::add_label(std::size_t column, LabelDictionary& labels,
                                  std::string_view text) {
  const std::int64_t number = labels.add(text);
  if (number >= LabelDictionary::kMostLabels) {
    throw DataError(place() + ": column " + quote_text(names_[column]) + " has more than " +
                    std::to_string(LabelDictionary::kMostLabels) +
                    " different values; that is too many for classes or categories");
  }
  return number;
}

void TableRows::take_category(std::size_t column, const FieldReader& reader,
                              std::string_view text) {
  LabelDictionary& labels = parsed_.labels[reader.feature];
  std::int64_t& place = category_rows_[reader.part][reader.slot];
  if (known_ == nullptr) {
    place = add_label(column, labels, text);
  } else if (const auto number = labels.find(text)) {
    place = *number;
  } else if (options_.unknown_is_missing) {
    place = -1;
    parsed_.has_missing[reader.feature] = 1;
  } else {
    row_problem(column, "unknown category " + quote_text(text) + "; the training data had " +
                            quoted_list(labels.labels()) + did_you_mean(text, labels.labels()));
  }
}

void TableRows::take_date(const FieldReader& reader, const Clock& clock) {
  const std::span<double> numbers = date_of(reader);
  // Days, since seconds of these years have more digits than the float32 of a model.
  numbers[0] = clock.seconds / kSecondsOfDay;
  std::size_t next = 1;
  for (const CalendarFeature* feature : calendars_[reader.feature]) {
    std::array<double, 2> parts{};
    // Hours and days are those of the clock.
    feature->write(clock.seconds + clock.ahead, parts.data());
    for (std::size_t i = 0; i < feature->width(); ++i)
      numbers[next++] = parts[i];
  }
}

void TableRows::take_class(std::size_t column, const FieldReader& reader, std::string_view text) {
  LabelDictionary& classes = parsed_.classes[reader.part];
  if (known_ == nullptr) {
    class_row_[reader.part] = add_label(column, classes, text);
  } else if (const auto number = classes.find(text)) {
    class_row_[reader.part] = *number;
  } else {
    row_problem(column, "unknown class " + quote_text(text) + "; the model's classes are " +
                            quoted_list(classes.labels()) + did_you_mean(text, classes.labels()));
  }
}

// A text that is neither has no number in `clock`.
void TableRows::take_clock(std::size_t column, std::string_view text, const Clock& clock,
                           bool is_date, bool is_number) {
  const bool is_time = fields_[column].reads == Reads::kTime;
  (is_time ? time_ : label_end_) = clock.seconds;
  if (is_time)
    ahead_ = clock.ahead;
  has_times_ = true;
  // The first that is one decides, so that a time and the end of its label are of one kind.
  if (!times_are_dates_ && known_ != nullptr)
    times_are_dates_ = known_->has_dates;
  else if (!times_are_dates_ && (is_date || is_number))
    times_are_dates_ = is_date;
  if (!times_are_dates_ || (*times_are_dates_ ? !is_date : !is_number)) {
    const DateFormat& format = *date_formats_[column];
    const std::string likely = known_ == nullptr ? likely_date_format(text) : "";
    row_problem(column,
                "expected " +
                    (!times_are_dates_ && format.is_iso() ? "a number or " : std::string()) +
                    (times_are_dates_.value_or(true) ? format.expected() : "a number") + ", got " +
                    quote_text(text) +
                    (likely.empty() || !times_are_dates_.value_or(true)
                         ? ""
                         : "; set \"date_format\", to " + quote_text(likely) + " perhaps"));
    return;
  }
  parsed_.times_are_dates = *times_are_dates_;
  if (is_date && last_time_ == clock.seconds && last_finer_ != clock.finer) {
    row_problem(column, "got " + quote_text(text) +
                            ", which is less than a microsecond from the time above; times are "
                            "kept to the microsecond: give numbers, such as nanoseconds since the "
                            "first");
  }
  last_time_ = clock.seconds;
  last_finer_ = clock.finer;
}

void TableRows::check_label_end() {
  if (!layout_.label_end || !is_training() || has_row_problems() || label_end_ >= time_) {
    return;
  }
  const bool dates = parsed_.times_are_dates;
  row_problems_.push_back(place() + ": the label ends at " + time_text(label_end_, dates) +
                          ", before the time of its row, " + time_text(time_, dates));
}

void TableRows::decide_target(std::size_t column, FieldReader& reader, std::string_view text) {
  double value = 0;
  const bool is_finite = read_whole_number(text, value);
  // A number with a fraction is no class; the loss then reports its requirement.
  const bool stands_for_class =
      is_finite && std::floor(value) == value &&
      !request_.takes(layout_.targets[reader.part].name, TargetKind::kNumbers);
  const bool is_number = is_finite || is_infinity(text);
  reader.reads = is_number && !stands_for_class ? Reads::kTargetNumber : Reads::kTargetClass;
  target_reads_[reader.part] = reader.reads;
  settle_place(column);
}

}  // namespace treadle::table
