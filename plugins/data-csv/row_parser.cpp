#include "row_parser.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/row_problems.h>

#include "number_text.h"

namespace treadle::csv {
namespace {

using After = CsvScanner::After;
using Purpose = OpenRequest::Purpose;

/// How a field is turned into a value.
enum class Reads : std::uint8_t {
  kNothing,
  kNumber,    // a feature
  kCategory,  // a feature
  kTargetNumber,
  kTargetClass,
  kTargetByLabel,  // the first label decides which of the two
  kWeight,
  kGroup,
  kTime
};

bool is_infinity(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+'))
    text.remove_prefix(1);
  const auto same = [](char a, char b) { return (a | 0x20) == b; };
  const auto is = [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(), same);
  };
  return is("inf") || is("infinity");
}

Reads reads_for_target(const OpenRequest& request, const std::optional<TableDescription>& known) {
  if (known)
    return known->target.kind == TargetKind::kClasses ? Reads::kTargetClass : Reads::kTargetNumber;
  if (request.task == Task::kClassification)
    return Reads::kTargetClass;
  if (request.task == Task::kRegression)
    return Reads::kTargetNumber;
  return request.loss_target == TargetKind::kClasses ? Reads::kTargetClass : Reads::kTargetByLabel;
}

/// The state of parse_rows().
template <typename T>
class RowParser {
 public:
  RowParser(CsvScanner& scanner, const RowPlan& plan);

  ParsedRows<T> parse();

 private:
  struct FieldReader {
    Reads reads = Reads::kNothing;
    std::size_t slot = 0;
  };

  bool is_training() const { return request_.purpose == Purpose::kTrain; }

  After parse_row(const char*& p);
  void end_row(std::size_t fields);
  void take(std::size_t field, std::string_view text);
  void take_missing(std::size_t field, std::string_view text);
  bool take_number(std::size_t field, std::string_view text, double& value);
  void take_category(std::size_t field, std::string_view text);
  void take_class(std::size_t field, std::string_view text);
  void take_time(std::size_t field, std::string_view text);
  void decide_target(std::size_t field, std::string_view text);
  std::int64_t add_label(std::size_t field, LabelDictionary& labels, std::string_view text);
  bool is_missing(std::string_view text) const;
  bool may_stand_for_missing(double value) const;
  void row_problem(std::size_t field, const std::string& message);

  CsvScanner& scanner_;
  const CsvOptions& options_;
  const OpenRequest& request_;
  const TableLayout& layout_;
  const std::vector<std::string>& names_;
  const std::optional<TableDescription>& known_;
  const std::size_t width_;
  std::vector<double> missing_numbers_;  // texts for "missing" that are numbers
  std::vector<FieldReader> fields_;
  Reads target_reads_ = Reads::kNothing;

  // The current row; it counts once it has ended well.
  T* row_ = nullptr;
  T target_number_ = 0;
  std::int64_t target_class_ = 0;
  T weight_ = 1;
  std::int64_t group_ = 0;
  double time_ = 0;
  bool drop_ = false;
  std::vector<std::string> row_problems_;
  std::int64_t unlisted_ = 0;

  ParsedRows<T> parsed_;
  LabelDictionary group_labels_;
  bool times_are_dates_ = false;
  RowProblems problems_;
};

template <typename T>
RowParser<T>::RowParser(CsvScanner& scanner, const RowPlan& plan)
    : scanner_(scanner),
      options_(plan.options),
      request_(plan.request),
      layout_(plan.layout),
      names_(plan.fields.names),
      known_(plan.known),
      width_(plan.layout.features.size()),
      fields_(plan.fields.entries.size()) {
  parsed_.categories.resize(width_);
  parsed_.has_missing.resize(width_, 0);
  for (const std::string& text : options_.missing_values) {
    double value = 0;
    if (read_whole_number(text, value))
      missing_numbers_.push_back(value);
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const auto& [role, slot] = plan.fields.entries[i];
    fields_[i].slot = static_cast<std::size_t>(slot);
    switch (role) {
      case Role::kNone:
        break;
      case Role::kFeature:
        fields_[i].reads =
            layout_.features[fields_[i].slot].is_category ? Reads::kCategory : Reads::kNumber;
        break;
      case Role::kTarget:
        fields_[i].reads = target_reads_ = reads_for_target(request_, known_);
        break;
      case Role::kWeight:
        fields_[i].reads = Reads::kWeight;
        break;
      case Role::kGroup:
        fields_[i].reads = Reads::kGroup;
        break;
      case Role::kTime:
        fields_[i].reads = Reads::kTime;
        break;
    }
  }
  if (known_) {
    parsed_.classes = LabelDictionary(known_->target.class_names);
    for (std::size_t i = 0; i < width_; ++i)
      parsed_.categories[i] = LabelDictionary(known_->columns[i].categories);
  }
}

template <typename T>
ParsedRows<T> RowParser<T>::parse() {
  while (const char* p = scanner_.begin_row()) {
    if (parse_row(p) == After::kMore) {
      scanner_.more();
    } else {
      scanner_.end_row(p);
    }
  }
  problems_.throw_if_any();
  parsed_.target = target_reads_ == Reads::kTargetClass    ? TargetKind::kClasses
                   : target_reads_ == Reads::kTargetNumber ? TargetKind::kNumbers
                                                           : TargetKind::kNone;
  return std::move(parsed_);
}

// The loop all the time is spent in. A number that is followed by a separator or a line end is read
// where it stands; everything else is cut out as text first.
template <typename T>
After RowParser<T>::parse_row(const char*& p) {
  constexpr double kLargest = std::numeric_limits<T>::max();
  row_ = parsed_.features.room(width_);
  drop_ = false;
  row_problems_.clear();
  unlisted_ = 0;
  const bool check_missing = !missing_numbers_.empty();
  const std::size_t expected = fields_.size();
  std::size_t field = 0;
  for (;; ++field) {
    After after;
    if (field < expected) [[likely]] {
      const FieldReader reader = fields_[field];
      const bool is_number = reader.reads == Reads::kNumber || reader.reads == Reads::kTargetNumber;
      double value;
      const char* const behind = is_number ? read_number(p, value) : nullptr;
      if (behind != nullptr && scanner_.ends_field(*behind) && std::abs(value) <= kLargest &&
          !(check_missing && may_stand_for_missing(value))) [[likely]] {
        (reader.reads == Reads::kNumber ? row_[reader.slot] : target_number_) =
            static_cast<T>(value);
        p = behind;
        after = scanner_.step(p);
      } else {
        const CsvScanner::Field text = scanner_.field(p);
        after = text.after;
        if (after != After::kMore && reader.reads != Reads::kNothing)
          take(field, text.text);
      }
    } else {
      after = scanner_.field(p).after;
    }
    if (after == After::kMore)
      return after;
    if (after == After::kRow)
      break;
  }
  end_row(field + 1);
  return After::kRow;
}

template <typename T>
void RowParser<T>::end_row(std::size_t fields) {
  if (fields != fields_.size()) {
    problems_.add([&] {
      return scanner_.shown() + ":" + std::to_string(scanner_.line()) + ": expected " +
             std::to_string(fields_.size()) + " fields, got " + std::to_string(fields);
    });
    return;
  }
  if (drop_) {
    ++parsed_.dropped;
    return;
  }
  if (!row_problems_.empty() || unlisted_ > 0) {
    for (std::string& sentence : row_problems_)
      problems_.add([&] { return std::move(sentence); });
    problems_.add_unlisted(unlisted_);
    return;
  }
  parsed_.features.commit(width_);
  if (target_reads_ == Reads::kTargetNumber) {
    parsed_.target_numbers.push(target_number_);
  } else if (target_reads_ == Reads::kTargetClass) {
    parsed_.target_classes.push(target_class_);
  }
  if (layout_.weight && request_.purpose != Purpose::kPredict)
    parsed_.weights.push(weight_);
  if (layout_.group && is_training())
    parsed_.groups.push(group_);
  if (layout_.time && is_training())
    parsed_.times.push(time_);
  parsed_.lines->add(scanner_.line());
  ++parsed_.rows;
}

template <typename T>
bool RowParser<T>::may_stand_for_missing(double value) const {
  return !missing_numbers_.empty() && std::find(missing_numbers_.begin(), missing_numbers_.end(),
                                                value) != missing_numbers_.end();
}

template <typename T>
bool RowParser<T>::is_missing(std::string_view text) const {
  if (std::find(options_.missing_values.begin(), options_.missing_values.end(), text) !=
      options_.missing_values.end()) {
    return true;
  }
  double value = 0;
  return !missing_numbers_.empty() && read_whole_number(text, value) &&
         may_stand_for_missing(value);
}

template <typename T>
void RowParser<T>::row_problem(std::size_t field, const std::string& message) {
  if (row_problems_.size() == RowProblems::kMostListed || problems_.is_full()) {
    ++unlisted_;
    return;
  }
  row_problems_.push_back(scanner_.shown() + ":" + std::to_string(scanner_.line()) + ": column " +
                          quote_text(names_[field]) + ": " + message);
}

template <typename T>
void RowParser<T>::take(std::size_t field, std::string_view text) {
  if (is_missing(text)) {
    take_missing(field, text);
    return;
  }
  if (fields_[field].reads == Reads::kTargetByLabel)
    decide_target(field, text);
  double value = 0;
  switch (fields_[field].reads) {
    case Reads::kNumber:
      if (take_number(field, text, value))
        row_[fields_[field].slot] = static_cast<T>(value);
      break;
    case Reads::kTargetNumber:
      if (take_number(field, text, value))
        target_number_ = static_cast<T>(value);
      break;
    case Reads::kWeight:
      if (!take_number(field, text, value))
        break;
      if (value < 0)
        row_problem(field, "a weight must be >= 0, got " + quote_text(text));
      weight_ = static_cast<T>(value);
      break;
    case Reads::kCategory:
      take_category(field, text);
      break;
    case Reads::kTargetClass:
      take_class(field, text);
      break;
    case Reads::kGroup:
      // Groups are as many as there are things that have more than one row.
      group_ = group_labels_.add(text);
      break;
    case Reads::kTime:
      take_time(field, text);
      break;
    case Reads::kNothing:
    case Reads::kTargetByLabel:
      break;
  }
}

template <typename T>
void RowParser<T>::take_missing(std::size_t field, std::string_view text) {
  const Reads reads = fields_[field].reads;
  const std::string got = text.empty() ? "" : " (" + quote_text(text) + ")";
  const bool is_feature = reads == Reads::kNumber || reads == Reads::kCategory;
  constexpr const char* kDropRow = "; \"missing\": \"drop_row\" leaves such rows out";
  constexpr const char* kImpute = ", \"nan\" hands them to the transform \"impute\"";
  switch (options_.missing) {
    case Missing::kDropRow:
      if (request_.purpose == Purpose::kPredict) {
        row_problem(field, "the value is missing" + got +
                               "; a row to predict cannot be dropped, train with \"missing\": "
                               "\"nan\" and the transform \"impute\"");
      }
      drop_ = request_.purpose != Purpose::kPredict;
      return;
    case Missing::kError:
      row_problem(field, "the value is missing" + got + (known_ ? "" : kDropRow) +
                             (known_ || !is_feature ? "" : kImpute));
      return;
    case Missing::kNan:
      break;
  }
  if (!is_feature) {
    row_problem(field, "the value is missing" + got +
                           "; \"missing\": \"nan\" is for columns to predict from only");
    return;
  }
  const std::size_t slot = fields_[field].slot;
  if (known_ && !known_->columns[slot].may_be_missing) {
    row_problem(field,
                "the value is missing" + got + ", which never happened in the training data");
    return;
  }
  parsed_.has_missing[slot] = 1;
  row_[slot] = std::numeric_limits<T>::quiet_NaN();
}

template <typename T>
bool RowParser<T>::take_number(std::size_t field, std::string_view text, double& value) {
  constexpr double kLargest = std::numeric_limits<T>::max();
  const Reads reads = fields_[field].reads;
  if (is_infinity(text)) {
    row_problem(field, "got " + quote_text(text) + ": infinity cannot be trained on");
    return false;
  }
  if (!read_whole_number(text, value)) {
    std::string remedy;
    if (!known_ && reads == Reads::kNumber) {
      remedy = "; list the column in \"categorical\" or the text in \"missing_values\"";
    } else if (!known_ && reads == Reads::kTargetNumber) {
      remedy = request_.task == Task::kRegression
                   ? "; the task \"regression\" needs numbers"
                   : "; if these are classes, set \"task\": \"classification\" in \"data\"";
    }
    row_problem(field, "expected a number, got " + quote_text(text) + remedy);
    return false;
  }
  if (std::abs(value) > kLargest) {
    row_problem(field, "got " + quote_text(text) + ", which is too large for " +
                           (sizeof(T) == sizeof(float) ? R"(float32; "dtype": "float64" holds more)"
                                                       : "float64"));
    return false;
  }
  return true;
}

template <typename T>
std::int64_t RowParser<T>::add_label(std::size_t field, LabelDictionary& labels,
                                     std::string_view text) {
  const std::int64_t number = labels.add(text);
  if (number >= LabelDictionary::kMostLabels) {
    scanner_.fail("column " + quote_text(names_[field]) + " has more than " +
                  std::to_string(LabelDictionary::kMostLabels) +
                  " different values; that is too many for classes or categories");
  }
  return number;
}

template <typename T>
void RowParser<T>::take_category(std::size_t field, std::string_view text) {
  const std::size_t slot = fields_[field].slot;
  LabelDictionary& labels = parsed_.categories[slot];
  if (!known_) {
    row_[slot] = static_cast<T>(add_label(field, labels, text));
  } else if (const auto number = labels.find(text)) {
    row_[slot] = static_cast<T>(*number);
  } else {
    row_problem(field, "unknown category " + quote_text(text) + "; the training data had " +
                           quoted_list(labels.labels()) + did_you_mean(text, labels.labels()));
  }
}

template <typename T>
void RowParser<T>::take_class(std::size_t field, std::string_view text) {
  if (!known_) {
    target_class_ = add_label(field, parsed_.classes, text);
  } else if (const auto number = parsed_.classes.find(text)) {
    target_class_ = *number;
  } else {
    row_problem(field, "unknown class " + quote_text(text) + "; the model knows " +
                           quoted_list(parsed_.classes.labels()) +
                           did_you_mean(text, parsed_.classes.labels()));
  }
}

template <typename T>
void RowParser<T>::take_time(std::size_t field, std::string_view text) {
  const bool is_date = read_time(text, time_);
  if (parsed_.rows == 0)
    times_are_dates_ = is_date;
  if (is_date ? !times_are_dates_
              : times_are_dates_ || !read_whole_number(text, time_) || std::isinf(time_)) {
    row_problem(field,
                std::string("expected ") +
                    (parsed_.rows > 0 && times_are_dates_ ? "an ISO 8601 date or date and time"
                     : parsed_.rows > 0                   ? "a number"
                                        : "a number or an ISO 8601 date or date and time") +
                    ", got " + quote_text(text));
  }
}

template <typename T>
void RowParser<T>::decide_target(std::size_t field, std::string_view text) {
  double value = 0;
  target_reads_ = read_whole_number(text, value) || is_infinity(text) ? Reads::kTargetNumber
                                                                      : Reads::kTargetClass;
  fields_[field].reads = target_reads_;
}

}  // namespace

template <typename T>
ParsedRows<T> parse_rows(CsvScanner& scanner, const RowPlan& plan) {
  return RowParser<T>(scanner, plan).parse();
}

template ParsedRows<float> parse_rows<float>(CsvScanner&, const RowPlan&);
template ParsedRows<double> parse_rows<double>(CsvScanner&, const RowPlan&);

}  // namespace treadle::csv
