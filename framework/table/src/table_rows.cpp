#include "table_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <variant>

#include <treadle/base/error.h>
#include <treadle/base/time_text.h>

#include <treadle/table/number_text.h>

namespace treadle::table {
namespace {

using Purpose = OpenRequest::Purpose;

RowSink::Wants wants_of(Reads reads) {
  switch (reads) {
    case Reads::kNothing:
      return RowSink::Wants::kNothing;
    case Reads::kNumber:
    case Reads::kTargetNumber:
    case Reads::kTargetLabel:
    case Reads::kTargetShare:
    case Reads::kWeight:
      return RowSink::Wants::kNumber;
    case Reads::kDate:
    case Reads::kTime:
    case Reads::kLabelEnd:
      return RowSink::Wants::kTime;
    case Reads::kCategory:
    case Reads::kTargetClass:
    case Reads::kTargetByLabel:
    case Reads::kGroup:
    case Reads::kBoth:
      break;
  }
  return RowSink::Wants::kText;
}

}  // namespace

TableRows::TableRows(const TableSource& source, const RowPlan& plan)
    : RowSink(plan.fields.entries.size()),
      source_(source),
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
  if (known_ != nullptr)
    parsed_.group_names = LabelDictionary(known_->groups);
  make_parts();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    fields_[i] = reader_for(plan.fields.entries[i]);
    if (plan.fields.second[i].use != Use::kNone) {
      twice_[i] = {fields_[i], reader_for(plan.fields.second[i])};
      fields_[i].reads = Reads::kBoth;
    }
    settle_place(i);
  }
}

TableRows::~TableRows() = default;

void TableRows::make_parts() {
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
    if (features[i].is_category)
      parsed_.category_places.push_back({i, features[i].port, width});
    widths_.push_back(features[i].inputs().size());
    width += widths_.back();
    for (const std::string& name : features[i].calendar)
      calendars_[i].push_back(find_calendar_feature(name));
    if (known_ != nullptr)
      parsed_.labels[i] = LabelDictionary(known_->columns[i].categories);
  }
  const std::size_t targets = request_.purpose == Purpose::kPredict ? 0 : layout_.targets.size();
  parsed_.target_numbers.resize(targets);
  parsed_.target_classes.resize(targets);
  parsed_.classes.resize(targets);
  for (std::size_t t = 0; t < targets; ++t) {
    target_reads_.push_back(known_ != nullptr ? reads_for_kind(known_->targets[t].kind)
                                              : reads_for_target(layout_.targets[t], request_));
    parsed_.target_numbers[t].width = layout_.targets[t].columns.size();
    parsed_.target_classes[t].width = 1;
    if (known_ != nullptr && target_reads_[t] == Reads::kTargetClass)
      parsed_.classes[t] = LabelDictionary(known_->targets[t].class_names);
  }
  rows_.resize(layout_.ports.size() + targets);
  category_rows_.resize(layout_.ports.size());
  class_row_.resize(targets);
}

TableRows::FieldReader TableRows::reader_for(const FieldPlan::Entry& entry) {
  switch (entry.use) {
    case Use::kFeature: {
      const UsedColumn& used = layout_.features[entry.slot];
      const Reads reads = used.is_category ? Reads::kCategory
                          : used.is_date   ? Reads::kDate
                                           : Reads::kNumber;
      return {reads, used.port, parsed_.places[entry.slot], entry.slot};
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

void TableRows::settle_place(std::size_t column) {
  const FieldReader& reader = fields_[column];
  wants_[column] = wants_of(reader.reads);
  const bool is_target = reader.reads == Reads::kTargetNumber;
  places_[column] = {
      reader.reads == Reads::kNumber || is_target,
      static_cast<std::uint32_t>(reader.part + (is_target ? layout_.ports.size() : 0)),
      static_cast<std::uint32_t>(reader.slot)};
  copies_ = missing_numbers_.empty();
  for (std::size_t i = 0; i < fields_.size(); ++i)
    copies_ = copies_ && (places_[i].is_plain || fields_[i].reads == Reads::kNothing);
}

ParsedRows TableRows::finish() {
  ParsedRows rows = take_rows();
  rows.classes = std::move(parsed_.classes);
  rows.labels = std::move(parsed_.labels);
  rows.group_names = std::move(parsed_.group_names);
  return rows;
}

ParsedRows TableRows::take_rows() {
  problems_.throw_if_any();
  ParsedRows taken = std::move(parsed_);
  parsed_ = ParsedRows();
  parsed_.classes = std::move(taken.classes);
  parsed_.labels = std::move(taken.labels);
  parsed_.group_names = std::move(taken.group_names);
  parsed_.has_missing = taken.has_missing;
  parsed_.places = taken.places;
  parsed_.category_places = taken.category_places;
  parsed_.times_are_dates = taken.times_are_dates;
  const auto make_like = [](auto& parts, const auto& others) {
    parts.resize(others.size());
    for (std::size_t i = 0; i < others.size(); ++i)
      parts[i].width = others[i].width;
  };
  make_like(parsed_.numbers, taken.numbers);
  make_like(parsed_.categories, taken.categories);
  make_like(parsed_.target_numbers, taken.target_numbers);
  make_like(parsed_.target_classes, taken.target_classes);
  for (const Reads reads : target_reads_)
    taken.target_kinds.push_back(kind_of(reads));
  return taken;
}

void TableRows::do_begin_row() {
  const std::size_t ports = parsed_.numbers.size();
  for (std::size_t i = 0; i < ports; ++i) {
    rows_[i] = parsed_.numbers[i].values.room(parsed_.numbers[i].width);
    category_rows_[i] = parsed_.categories[i].values.room(parsed_.categories[i].width);
  }
  for (std::size_t i = 0; i < target_reads_.size(); ++i) {
    if (target_reads_[i] != Reads::kTargetClass) {
      rows_[ports + i] = parsed_.target_numbers[i].values.room(parsed_.target_numbers[i].width);
    }
  }
  drop_ = false;
  row_problems_.clear();
  unlisted_ = 0;
}

void TableRows::do_bad_row(const std::string& sentence) {
  problems_.add([&] { return place() + ": " + sentence; });
}

void TableRows::do_end_row() {
  if (drop_) {
    ++parsed_.dropped;
    return;
  }
  check_distributions();
  check_label_end();
  if (has_row_problems()) {
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
  parsed_.positions->add(position());
  ++parsed_.rows;
}

void TableRows::do_missing(std::size_t column) {
  switch (fields_[column].reads) {
    case Reads::kNothing:
      return;
    case Reads::kBoth:
      take_missing(column, twice_[column].first, "");
      take_missing(column, twice_[column].second, "");
      return;
    default:
      take_missing(column, fields_[column], "");
  }
}

void TableRows::do_number(std::size_t column, double value) {
  if (fields_[column].reads == Reads::kNothing)
    return;
  if (std::isnan(value))
    return do_missing(column);
  std::array<char, 32> text;
  take(column, std::string_view(text.begin(), write_number(text.data(), value)));
}

void TableRows::do_integer(std::size_t column, std::int64_t value) {
  if (put(column, static_cast<double>(value)) || fields_[column].reads == Reads::kNothing)
    return;
  std::array<char, 24> text;
  const char* const end = std::to_chars(text.begin(), text.end(), value).ptr;
  take(column, std::string_view(text.begin(), end));
}

void TableRows::do_time(std::size_t column, const Timestamp& value) {
  const Reads reads = fields_[column].reads;
  if (reads != Reads::kDate && reads != Reads::kTime && reads != Reads::kLabelEnd) {
    time_as_text(column, value);
    return;
  }
  constexpr std::int64_t kMicrosecond = 1000;
  constexpr std::int64_t kFiner = 1'000'000;  // of a nanosecond's, down to fifteen digits
  const Clock clock{static_cast<double>(value.seconds) + value.nanoseconds * 1e-9,
                    value.nanoseconds % kMicrosecond * kFiner,
                    static_cast<double>(value.utc_offset)};
  if (reads == Reads::kDate)
    return take_date(fields_[column], clock);
  take_clock(column, time_text(clock.seconds, true), clock, true, false);
}

bool TableRows::can_copy(std::span<const ColumnChunk> chunks) const {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!places_[i].is_plain)
      continue;
    const ColumnChunk::Values& values = chunks[i].values;
    if (!chunks[i].valid.empty() || std::holds_alternative<std::monostate>(values) ||
        std::holds_alternative<std::span<const std::string_view>>(values) ||
        std::holds_alternative<Timestamps>(values)) {
      return false;
    }
  }
  return copies_;
}

bool TableRows::copy_block(std::span<const ColumnChunk> chunks, std::size_t begin, std::size_t rows,
                           std::int64_t first) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const std::size_t ports = parsed_.numbers.size();
  const auto part = [&](std::size_t i) -> ParsedRows::Numbers& {
    return i < ports ? parsed_.numbers[i] : parsed_.target_numbers[i - ports];
  };
  for (std::size_t i = 0; i < rows_.size(); ++i)
    rows_[i] = part(i).values.room(part(i).width * rows);
  bool is_finite = true;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Place place = places_[i];
    if (!place.is_plain)
      continue;
    double* to = rows_[place.part] + place.slot;
    const std::size_t width = part(place.part).width;
    std::visit(
        [&](const auto& values) {
          if constexpr (requires { static_cast<double>(values[0]); }) {
            for (std::size_t row = 0; row < rows; ++row, to += width) {
              const auto value = static_cast<double>(values[begin + row]);
              is_finite = is_finite & (std::abs(value) <= kLargest);
              *to = value;
            }
          }
        },
        chunks[i].values);
  }
  if (!is_finite)
    return false;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    part(i).values.commit(part(i).width * rows);
  parsed_.positions->add(first, static_cast<std::int64_t>(rows));
  parsed_.rows += static_cast<std::int64_t>(rows);
  return true;
}

// In blocks that stay in the cache, since a column is written with a stride.
void TableRows::do_add(std::span<const ColumnChunk> chunks, std::size_t rows, std::int64_t first) {
  constexpr std::size_t kBlock = 256;
  for (std::size_t begin = 0; begin < rows; begin += kBlock) {
    const std::size_t count = std::min(kBlock, rows - begin);
    const std::int64_t position = first + static_cast<std::int64_t>(begin);
    if (!can_copy(chunks) || !copy_block(chunks, begin, count, position))
      add_row_by_row(chunks, begin, count, position);
  }
}

}  // namespace treadle::table
