#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <treadle/table/number_text.h>
#include <treadle/table/row_sink.h>

namespace treadle::table {
namespace {

/// Gives one value of a chunk to a sink.
struct CellGiver {
  RowSink& sink;
  std::size_t column;
  std::size_t row;

  void operator()(std::monostate) const {}
  void operator()(std::span<const double> values) const { sink.number(column, values[row]); }
  void operator()(std::span<const float> values) const {
    sink.number(column, static_cast<double>(values[row]));
  }
  void operator()(std::span<const std::int64_t> values) const { sink.integer(column, values[row]); }
  void operator()(std::span<const std::int32_t> values) const { sink.integer(column, values[row]); }
  void operator()(std::span<const std::string_view> values) const {
    sink.text(column, values[row]);
  }
  void operator()(const Timestamps& times) const {
    constexpr std::int64_t kNanoseconds = 1'000'000'000;
    const std::int64_t count = times.counts[row];
    std::int64_t seconds = count / times.per_second;
    std::int64_t rest = count % times.per_second;
    if (rest < 0) {
      rest += times.per_second;
      --seconds;
    }
    sink.time(column,
              {seconds, static_cast<std::int32_t>(rest * (kNanoseconds / times.per_second))});
  }
};

/// "2016-07-01T00:15:30.500000000+02:00"; a date alone at midnight, UTC.
std::string iso_text(const Timestamp& time) {
  constexpr std::int64_t kDay = 86400;
  const std::int64_t local = time.seconds + time.utc_offset;
  const std::int64_t day = (local >= 0 ? local : local - kDay + 1) / kDay;
  const std::int64_t second = local - day * kDay;
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(day)}}};
  std::array<char, 64> text;
  int length =
      std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  const auto add = [&](const char* format, auto... values) {
    length += std::snprintf(text.data() + length, text.size() - static_cast<std::size_t>(length),
                            format, values...);
  };
  if (second != 0 || time.nanoseconds != 0 || time.utc_offset != 0) {
    add("T%02d:%02d:%02d", static_cast<int>(second / 3600), static_cast<int>(second / 60 % 60),
        static_cast<int>(second % 60));
  }
  if (time.nanoseconds != 0)
    add(".%09d", time.nanoseconds);
  if (time.utc_offset != 0) {
    const int minutes = std::abs(time.utc_offset) / 60;
    add("%c%02d:%02d", time.utc_offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
  }
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

RowSink::~RowSink() = default;

bool RowSink::is_missing_number(double value) const {
  return std::find(missing_numbers_.begin(), missing_numbers_.end(), value) !=
         missing_numbers_.end();
}

void RowSink::add_row_by_row(std::span<const ColumnChunk> chunks, std::size_t begin,
                             std::size_t rows, std::int64_t first) {
  for (std::size_t row = 0; row < rows; ++row) {
    begin_row(first + static_cast<std::int64_t>(row));
    for (std::size_t column = 0; column < chunks.size(); ++column) {
      if (wants_[column] == Wants::kNothing)
        continue;
      const ColumnChunk& chunk = chunks[column];
      if (!chunk.valid.empty() && chunk.valid[begin + row] == 0) {
        missing(column);
      } else {
        std::visit(CellGiver{*this, column, begin + row}, chunk.values);
      }
    }
    end_row();
  }
}

void RowSink::do_add(std::span<const ColumnChunk> chunks, std::size_t rows, std::int64_t first) {
  add_row_by_row(chunks, 0, rows, first);
}

void RowSink::do_number(std::size_t column, double value) {
  if (std::isnan(value))
    return do_missing(column);
  std::array<char, 32> text;
  do_text(column, std::string_view(text.begin(), write_number(text.data(), value)));
}

void RowSink::do_integer(std::size_t column, std::int64_t value) {
  std::array<char, 24> text;
  const char* const end = std::to_chars(text.begin(), text.end(), value).ptr;
  do_text(column, std::string_view(text.begin(), end));
}

void RowSink::time_as_text(std::size_t column, const Timestamp& value) {
  do_text(column, iso_text(value));
}

}  // namespace treadle::table
