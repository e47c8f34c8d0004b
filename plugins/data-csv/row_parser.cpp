#include "row_parser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/calendar.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/time_text.h>
#include <treadle/core/data/row_problems.h>

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
  kDate,      // a feature, which becomes several numbers
  kTargetNumber,
  kTargetLabel,  // 0 or 1
  kTargetShare,  // a probability
  kTargetClass,
  kTargetByLabel,  // the first label decides, where losses and metrics leave it open
  kWeight,
  kGroup,
  kTime,
  kLabelEnd,
  kTwice  // a feature and a target
};

constexpr double kSecondsOfDay = 86400;

bool is_infinity(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+'))
    text.remove_prefix(1);
  const auto same = [](char a, char b) { return (a | 0x20) == b; };
  const auto is = [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(), same);
  };
  return is("inf") || is("infinity");
}

/// "5,1" for 5.1, as spreadsheets write it in many countries.
bool has_decimal_comma(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos)
    return false;
  std::string with_point(text);
  with_point[comma] = '.';
  double value = 0;
  return read_whole_number(with_point, value);
}

Reads reads_for_kind(TargetKind kind) {
  switch (kind) {
    case TargetKind::kClasses:
      return Reads::kTargetClass;
    case TargetKind::kLabels:
      return Reads::kTargetLabel;
    case TargetKind::kDistribution:
      return Reads::kTargetShare;
    case TargetKind::kNumbers:
      break;
  }
  return Reads::kTargetNumber;
}

TargetKind kind_of(Reads reads) {
  return reads == Reads::kTargetClass   ? TargetKind::kClasses
         : reads == Reads::kTargetLabel ? TargetKind::kLabels
         : reads == Reads::kTargetShare ? TargetKind::kDistribution
                                        : TargetKind::kNumbers;
}

bool is_target(Reads reads) {
  return reads == Reads::kTargetClass || reads == Reads::kTargetByLabel ||
         reads == Reads::kTargetNumber || reads == Reads::kTargetLabel ||
         reads == Reads::kTargetShare;
}

Reads reads_for_target(const TargetColumns& target, const OpenRequest& request) {
  switch (target.kind) {
    case KindAsked::kClasses:
      return Reads::kTargetClass;
    case KindAsked::kNumbers:
      return Reads::kTargetNumber;
    case KindAsked::kLabels:
      return Reads::kTargetLabel;
    case KindAsked::kDistribution:
      return Reads::kTargetShare;
    case KindAsked::kAuto:
      break;
  }
  const bool is_single = target.columns.size() == 1;
  if (request.task == Task::kRegression)
    return Reads::kTargetNumber;
  if (request.task == Task::kClassification && is_single)
    return Reads::kTargetClass;
  if (request.takes(target.name, TargetKind::kNumbers))
    return is_single ? Reads::kTargetByLabel : Reads::kTargetNumber;
  if (is_single && request.takes(target.name, TargetKind::kClasses))
    return Reads::kTargetByLabel;
  for (const TargetKind kind : {TargetKind::kLabels, TargetKind::kDistribution}) {
    if (request.takes(target.name, kind))
      return reads_for_kind(kind);
  }
  return Reads::kTargetNumber;
}

/// The state of parse_rows().
class RowParser {
 public:
  RowParser(CsvScanner& scanner, const RowPlan& plan);

  ParsedRows parse();

 private:
  /// Where a field's value goes: to a place in the current row of a port or target.
  struct FieldReader {
    Reads reads = Reads::kNothing;
    std::size_t part = 0;     // the port or target
    std::size_t slot = 0;     // the place in its row
    std::size_t feature = 0;  // of a feature: which one
  };

  FieldReader reader_for(const FieldPlan::Entry& entry);
  void make_parts();
  void begin_row();
  void check_distributions();
  /// The current row's place for a number; expects one of those kinds.
  double& place_of(const FieldReader& reader) {
    return (reader.reads == Reads::kNumber ? number_rows_ : target_rows_)[reader.part][reader.slot];
  }
  bool is_training() const { return request_.purpose == Purpose::kTrain; }

  After parse_row(const char*& p);
  void end_row(std::size_t fields);
  void take(std::size_t field, std::string_view text);
  void take_as(std::size_t field, FieldReader& reader, std::string_view text);
  void take_missing(std::size_t field, const FieldReader& reader, std::string_view text);
  bool take_number(std::size_t field, const FieldReader& reader, std::string_view text,
                   double& value);
  void take_category(std::size_t field, const FieldReader& reader, std::string_view text);
  void take_date(std::size_t field, const FieldReader& reader, std::string_view text);
  /// The numbers of the current row that a date becomes.
  std::span<double> date_of(const FieldReader& reader);
  void take_class(std::size_t field, const FieldReader& reader, std::string_view text);
  void take_time(std::size_t field, std::string_view text, double& time, double* ahead = nullptr);
  void check_label_end();
  void decide_target(FieldReader& reader, std::string_view text);
  std::int64_t add_label(std::size_t field, LabelDictionary& labels, std::string_view text);
  bool is_missing(std::string_view text) const;
  /// What to do with a text where a trained model needs a number to predict from.
  std::string remedy_for_text(const FieldReader& reader) const;
  bool may_stand_for_missing(double value) const;
  void row_problem(std::size_t field, const std::string& message);

  CsvScanner& scanner_;
  const CsvOptions& options_;
  const OpenRequest& request_;
  const TableLayout& layout_;
  const std::vector<std::string>& names_;
  const std::optional<TableDescription>& known_;
  std::vector<double> missing_numbers_;  // texts for "missing" that are numbers
  std::vector<FieldReader> fields_;
  std::vector<std::pair<FieldReader, FieldReader>> twice_;  // per field, where it has two uses
  // Per feature: what a date becomes, and how many numbers that are.
  std::vector<std::vector<const CalendarFeature*>> calendars_;
  std::vector<std::size_t> widths_;
  std::vector<Reads> target_reads_;  // per target; empty: there are none

  // The current row; it counts once it has ended well.
  std::vector<double*> number_rows_;          // per port
  std::vector<std::int64_t*> category_rows_;  // likewise
  std::vector<double*> target_rows_;          // per target
  std::vector<std::int64_t> class_row_;       // likewise
  double weight_ = 1;
  std::int64_t group_ = 0;
  double time_ = 0;
  double ahead_ = 0;  // of the time, its clock
  double label_end_ = 0;
  bool has_times_ = false;
  double last_time_ = NAN;
  std::int64_t last_finer_ = 0;
  std::optional<bool> times_are_dates_;  // unknown before the first time that is one
  bool has_groups_ = false;
  bool drop_ = false;
  std::vector<std::string> row_problems_;
  std::int64_t unlisted_ = 0;

  ParsedRows parsed_;
  RowProblems problems_;
};

RowParser::RowParser(CsvScanner& scanner, const RowPlan& plan)
    : scanner_(scanner),
      options_(plan.options),
      request_(plan.request),
      layout_(plan.layout),
      names_(plan.fields.names),
      known_(plan.known),
      fields_(plan.fields.entries.size()),
      twice_(plan.fields.entries.size()) {
  for (const std::string& text : options_.missing_values) {
    double value = 0;
    if (read_whole_number(text, value))
      missing_numbers_.push_back(value);
  }
  if (known_)
    parsed_.group_names = LabelDictionary(known_->groups);
  make_parts();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    fields_[i] = reader_for(plan.fields.entries[i]);
    if (plan.fields.second[i].use == Use::kNone)
      continue;
    twice_[i] = {fields_[i], reader_for(plan.fields.second[i])};
    fields_[i].reads = Reads::kTwice;
  }
}

void RowParser::make_parts() {
  const std::vector<UsedColumn>& features = layout_.features;
  parsed_.numbers.resize(layout_.ports.size());
  parsed_.categories.resize(layout_.ports.size());
  parsed_.has_missing.resize(features.size(), 0);
  parsed_.labels.resize(features.size());
  calendars_.resize(features.size());
  for (std::size_t i = 0; i < features.size(); ++i) {
    std::size_t& width = features[i].is_category ? parsed_.categories[features[i].port].width
                                                 : parsed_.numbers[features[i].port].width;
    parsed_.places.push_back(width);
    widths_.push_back(features[i].inputs().size());
    width += widths_.back();
    for (const std::string& name : features[i].calendar)
      calendars_[i].push_back(find_calendar_feature(name));
    if (known_)
      parsed_.labels[i] = LabelDictionary(known_->columns[i].categories);
  }
  const std::size_t targets = request_.purpose == Purpose::kPredict ? 0 : layout_.targets.size();
  parsed_.target_numbers.resize(targets);
  parsed_.target_classes.resize(targets);
  parsed_.classes.resize(targets);
  for (std::size_t t = 0; t < targets; ++t) {
    target_reads_.push_back(known_ ? reads_for_kind(known_->targets[t].kind)
                                   : reads_for_target(layout_.targets[t], request_));
    parsed_.target_numbers[t].width = layout_.targets[t].columns.size();
    parsed_.target_classes[t].width = 1;
    if (known_ && target_reads_[t] == Reads::kTargetClass)
      parsed_.classes[t] = LabelDictionary(known_->targets[t].class_names);
  }
  number_rows_.resize(layout_.ports.size());
  category_rows_.resize(layout_.ports.size());
  target_rows_.resize(targets);
  class_row_.resize(targets);
}

RowParser::FieldReader RowParser::reader_for(const FieldPlan::Entry& entry) {
  switch (entry.use) {
    case Use::kFeature: {
      const UsedColumn& column = layout_.features[entry.slot];
      const Reads reads = column.is_category ? Reads::kCategory
                          : column.is_date   ? Reads::kDate
                                             : Reads::kNumber;
      return {reads, column.port, parsed_.places[entry.slot], entry.slot};
    }
    case Use::kTarget:
      return {target_reads_[entry.target], entry.target, entry.slot};
    case Use::kWeight:
      return {Reads::kWeight};
    case Use::kGroup:
      return {Reads::kGroup};
    case Use::kTime:
      return {Reads::kTime};
    case Use::kLabelEnd:
      return {Reads::kLabelEnd};
    case Use::kNone:
      break;
  }
  return {};
}

ParsedRows RowParser::parse() {
  while (const char* p = scanner_.begin_row()) {
    if (parse_row(p) == After::kMore) {
      scanner_.more();
    } else {
      scanner_.end_row(p);
    }
  }
  problems_.throw_if_any();
  for (const Reads reads : target_reads_)
    parsed_.target_kinds.push_back(kind_of(reads));
  return std::move(parsed_);
}

void RowParser::begin_row() {
  for (std::size_t i = 0; i < number_rows_.size(); ++i) {
    number_rows_[i] = parsed_.numbers[i].values.room(parsed_.numbers[i].width);
    category_rows_[i] = parsed_.categories[i].values.room(parsed_.categories[i].width);
  }
  for (std::size_t i = 0; i < target_rows_.size(); ++i) {
    if (target_reads_[i] != Reads::kTargetClass)
      target_rows_[i] = parsed_.target_numbers[i].values.room(parsed_.target_numbers[i].width);
  }
  drop_ = false;
  row_problems_.clear();
  unlisted_ = 0;
}

// The loop all the time is spent in. A number that is followed by a separator or a line end is read
// where it stands; everything else is cut out as text first.
After RowParser::parse_row(const char*& p) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  begin_row();
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
        place_of(reader) = value;
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

void RowParser::end_row(std::size_t fields) {
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
  check_distributions();
  check_label_end();
  if (!row_problems_.empty() || unlisted_ > 0) {
    for (std::string& sentence : row_problems_)
      problems_.add([&] { return std::move(sentence); });
    problems_.add_unlisted(unlisted_);
    return;
  }
  for (auto& part : parsed_.numbers)
    part.values.commit(part.width);
  for (auto& part : parsed_.categories)
    part.values.commit(part.width);
  for (std::size_t t = 0; t < target_reads_.size(); ++t) {
    if (target_reads_[t] == Reads::kTargetClass) {
      parsed_.target_classes[t].values.push(class_row_[t]);
    } else {
      parsed_.target_numbers[t].values.commit(parsed_.target_numbers[t].width);
    }
  }
  if (layout_.weight && request_.purpose != Purpose::kPredict)
    parsed_.weights.push(weight_);
  if (has_groups_)
    parsed_.groups.push(group_);
  if (has_times_)
    parsed_.times.push(time_);
  if (has_times_ && (ahead_ != 0 || parsed_.utc_offsets.size() > 0)) {
    while (parsed_.utc_offsets.size() + 1 < parsed_.times.size())
      parsed_.utc_offsets.push(0);
    parsed_.utc_offsets.push(ahead_);
  }
  if (layout_.label_end && is_training())
    parsed_.label_ends.push(label_end_);
  parsed_.lines->add(scanner_.line());
  ++parsed_.rows;
}

void RowParser::check_distributions() {
  constexpr double kTolerance = 1e-3;
  for (std::size_t t = 0; t < target_reads_.size(); ++t) {
    if (target_reads_[t] != Reads::kTargetShare || !row_problems_.empty() || unlisted_ > 0)
      continue;
    double sum = 0;
    for (std::size_t i = 0; i < parsed_.target_numbers[t].width; ++i)
      sum += target_rows_[t][i];
    if (std::abs(sum - 1) <= kTolerance)
      continue;
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", sum);
    row_problems_.push_back(scanner_.shown() + ":" + std::to_string(scanner_.line()) +
                            ": the distribution " + quote_text(layout_.targets[t].name) +
                            " sums to " + text + "; its columns must sum to 1 in each row");
  }
}

bool RowParser::may_stand_for_missing(double value) const {
  return !missing_numbers_.empty() && std::find(missing_numbers_.begin(), missing_numbers_.end(),
                                                value) != missing_numbers_.end();
}

bool RowParser::is_missing(std::string_view text) const {
  if (std::find(options_.missing_values.begin(), options_.missing_values.end(), text) !=
      options_.missing_values.end()) {
    return true;
  }
  double value = 0;
  return !missing_numbers_.empty() && read_whole_number(text, value) &&
         may_stand_for_missing(value);
}

void RowParser::row_problem(std::size_t field, const std::string& message) {
  if (row_problems_.size() == RowProblems::kMostListed || problems_.is_full()) {
    ++unlisted_;
    return;
  }
  row_problems_.push_back(scanner_.shown() + ":" + std::to_string(scanner_.line()) + ": column " +
                          quote_text(names_[field]) + ": " + message);
}

void RowParser::take(std::size_t field, std::string_view text) {
  if (fields_[field].reads != Reads::kTwice) {
    take_as(field, fields_[field], text);
    return;
  }
  take_as(field, twice_[field].first, text);
  take_as(field, twice_[field].second, text);
}

void RowParser::take_as(std::size_t field, FieldReader& reader, std::string_view text) {
  if (is_missing(text)) {
    take_missing(field, reader, text);
    return;
  }
  if (reader.reads == Reads::kTargetByLabel)
    decide_target(reader, text);
  double value = 0;
  switch (reader.reads) {
    case Reads::kNumber:
    case Reads::kTargetNumber:
      if (take_number(field, reader, text, value))
        place_of(reader) = value;
      break;
    case Reads::kTargetLabel:
      if (!take_number(field, reader, text, value))
        break;
      if (value != 0 && value != 1)
        row_problem(field, "a label must be 0 or 1, got " + quote_text(text));
      place_of(reader) = value;
      break;
    case Reads::kTargetShare:
      if (!take_number(field, reader, text, value))
        break;
      if (value < 0)
        row_problem(field, "a probability must be >= 0, got " + quote_text(text));
      place_of(reader) = value;
      break;
    case Reads::kWeight:
      if (!take_number(field, reader, text, value))
        break;
      if (value < 0)
        row_problem(field, "a weight must be >= 0, got " + quote_text(text));
      weight_ = value;
      break;
    case Reads::kCategory:
      take_category(field, reader, text);
      break;
    case Reads::kDate:
      take_date(field, reader, text);
      break;
    case Reads::kTargetClass:
      take_class(field, reader, text);
      break;
    case Reads::kGroup:
      // Groups are as many as there are things that have more than one row.
      group_ = parsed_.group_names.find(text).value_or(-1);
      if (group_ < 0 || !known_)
        group_ = parsed_.group_names.add(text);
      has_groups_ = true;
      break;
    case Reads::kTime:
      take_time(field, text, time_, &ahead_);
      break;
    case Reads::kLabelEnd:
      take_time(field, text, label_end_);
      break;
    case Reads::kNothing:
    case Reads::kTargetByLabel:
    case Reads::kTwice:
      break;
  }
}

void RowParser::take_missing(std::size_t field, const FieldReader& reader, std::string_view text) {
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
      is_feature && (request_.missing_inputs || (known_ && options_.unknown_is_missing));
  if (is_target(reads) && options_.drops_rows_without_target) {
    drop_ = true;
    return;
  }
  switch (is_let_pass ? Missing::kNan : options_.missing) {
    case Missing::kDropRow:
      if (request_.purpose == Purpose::kPredict) {
        row_problem(field, "the value is missing" + got +
                               "; a row to predict cannot be dropped, train with \"missing\": "
                               "\"nan\" and the transform \"impute\"");
      }
      drop_ = request_.purpose != Purpose::kPredict;
      return;
    case Missing::kError:
      row_problem(field, "the value is missing" + got +
                             (!known_      ? kDropRow + std::string(is_feature ? kImpute : "")
                              : is_feature ? kTrainedWithout
                                           : ""));
      return;
    case Missing::kNan:
      break;
  }
  if (!is_feature) {
    row_problem(field, "the value is missing" + got +
                           "; \"missing\": \"nan\" is for columns to predict from only" +
                           (is_target(reads) && !known_
                                ? "; \"missing_target\": \"drop_row\" leaves such rows out"
                                : ""));
    return;
  }
  if (known_ && !known_->columns[reader.feature].may_be_missing && !is_let_pass) {
    row_problem(field, "the value is missing" + got +
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

bool RowParser::take_number(std::size_t field, const FieldReader& reader, std::string_view text,
                            double& value) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const Reads reads = reader.reads;
  if (is_infinity(text)) {
    row_problem(field, "got " + quote_text(text) + ": infinity cannot be trained on");
    return false;
  }
  if (!read_whole_number(text, value)) {
    std::string remedy;
    if (has_decimal_comma(text)) {
      remedy = "; write it with a decimal point, and thousands without a separator";
    } else if (known_ && reads == Reads::kNumber) {
      remedy = remedy_for_text(reader);
    } else if (!known_ && reads == Reads::kNumber) {
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
    row_problem(field, "got " + quote_text(text) + ", which is too large for float64");
    return false;
  }
  return true;
}

std::string RowParser::remedy_for_text(const FieldReader& reader) const {
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

std::int64_t RowParser::add_label(std::size_t field, LabelDictionary& labels,
                                  std::string_view text) {
  const std::int64_t number = labels.add(text);
  if (number >= LabelDictionary::kMostLabels) {
    scanner_.fail("column " + quote_text(names_[field]) + " has more than " +
                  std::to_string(LabelDictionary::kMostLabels) +
                  " different values; that is too many for classes or categories");
  }
  return number;
}

void RowParser::take_category(std::size_t field, const FieldReader& reader, std::string_view text) {
  LabelDictionary& labels = parsed_.labels[reader.feature];
  std::int64_t& place = category_rows_[reader.part][reader.slot];
  if (!known_) {
    place = add_label(field, labels, text);
  } else if (const auto number = labels.find(text)) {
    place = *number;
  } else if (options_.unknown_is_missing) {
    place = -1;
    parsed_.has_missing[reader.feature] = 1;
  } else {
    row_problem(field, "unknown category " + quote_text(text) + "; the training data had " +
                           quoted_list(labels.labels()) + did_you_mean(text, labels.labels()));
  }
}

std::span<double> RowParser::date_of(const FieldReader& reader) {
  return {number_rows_[reader.part] + reader.slot, widths_[reader.feature]};
}

void RowParser::take_date(std::size_t field, const FieldReader& reader, std::string_view text) {
  double time = 0;
  double ahead = 0;
  if (!read_time(text, time, nullptr, &ahead)) {
    row_problem(field, "expected an ISO 8601 date or date and time, got " + quote_text(text) +
                           (known_ ? "" : "; list the column in \"categorical\" instead"));
    return;
  }
  const std::span<double> numbers = date_of(reader);
  // Days, since seconds of these years have more digits than the float32 of a model.
  numbers[0] = time / kSecondsOfDay;
  std::size_t next = 1;
  for (const CalendarFeature* feature : calendars_[reader.feature]) {
    std::array<double, 2> parts{};
    feature->write(time + ahead, parts.data());  // hours and days are those of the clock
    for (std::size_t i = 0; i < feature->width(); ++i)
      numbers[next++] = parts[i];
  }
}

void RowParser::take_class(std::size_t field, const FieldReader& reader, std::string_view text) {
  LabelDictionary& classes = parsed_.classes[reader.part];
  if (!known_) {
    class_row_[reader.part] = add_label(field, classes, text);
  } else if (const auto number = classes.find(text)) {
    class_row_[reader.part] = *number;
  } else {
    row_problem(field, "unknown class " + quote_text(text) + "; the model's classes are " +
                           quoted_list(classes.labels()) + did_you_mean(text, classes.labels()));
  }
}

void RowParser::take_time(std::size_t field, std::string_view text, double& time, double* ahead) {
  std::int64_t finer = 0;
  double clock = 0;
  const bool is_date = read_time(text, time, &finer, &clock);
  if (ahead != nullptr)
    *ahead = clock;
  const bool is_number = !is_date && read_whole_number(text, time) && !std::isinf(time);
  has_times_ = true;
  // The first that is one decides, so that a time and the end of its label are of one kind.
  if (!times_are_dates_ && known_)
    times_are_dates_ = known_->has_dates;
  else if (!times_are_dates_ && (is_date || is_number))
    times_are_dates_ = is_date;
  if (!times_are_dates_ || (*times_are_dates_ ? !is_date : !is_number)) {
    row_problem(field, std::string("expected ") +
                           (!times_are_dates_   ? "a number or an ISO 8601 date or date and time"
                            : *times_are_dates_ ? "an ISO 8601 date or date and time"
                                                : "a number") +
                           ", got " + quote_text(text));
    return;
  }
  parsed_.times_are_dates = *times_are_dates_;
  if (is_date && last_time_ == time && last_finer_ != finer) {
    row_problem(field, "got " + quote_text(text) +
                           ", which is less than a microsecond from the time above; times are kept "
                           "to the microsecond: give numbers, such as nanoseconds since the first");
  }
  last_time_ = time;
  last_finer_ = finer;
}

void RowParser::check_label_end() {
  if (!layout_.label_end || !is_training() || !row_problems_.empty() || unlisted_ > 0 ||
      label_end_ >= time_) {
    return;
  }
  const bool dates = parsed_.times_are_dates;
  row_problems_.push_back(scanner_.shown() + ":" + std::to_string(scanner_.line()) +
                          ": the label ends at " + time_text(label_end_, dates) +
                          ", before the time of its row, " + time_text(time_, dates));
}

void RowParser::decide_target(FieldReader& reader, std::string_view text) {
  double value = 0;
  const bool is_finite = read_whole_number(text, value);
  // A number with a fraction is no class; the loss then says what it needs.
  const bool stands_for_class =
      is_finite && std::floor(value) == value &&
      !request_.takes(layout_.targets[reader.part].name, TargetKind::kNumbers);
  const bool is_number = is_finite || is_infinity(text);
  reader.reads = is_number && !stands_for_class ? Reads::kTargetNumber : Reads::kTargetClass;
  target_reads_[reader.part] = reader.reads;
}

}  // namespace

ParsedRows parse_rows(CsvScanner& scanner, const RowPlan& plan) {
  return RowParser(scanner, plan).parse();
}

}  // namespace treadle::csv
