#include "parquet_source.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::parquet {
namespace {

constexpr std::int64_t kRowsAtOnce = 8192;
constexpr std::int64_t kSecondsOfADay = 86400;

}  // namespace

std::string ParquetSource::do_place_of(std::int64_t position) const {
  return files_.shown(files_.file_of(position)) + ", row " +
         std::to_string(table::SourceFiles::line_of(position));
}

table::TableColumns ParquetSource::do_open() {
  files_.find();
  open_file(0);
  if (names_.empty())
    throw DataError(files_.shown(0) + ": the file has no columns");
  converted_.resize(names_.size());
  return {names_, true, files_.shown(0), ""};
}

void ParquetSource::open_file(std::size_t file) {
  const std::string shown = files_.shown(file);
  reader_.reset();  // it borrows the file
  file_.emplace(std::make_unique<FileSource>(files_[file], shown), shown);
  file_index_ = file;
  row_ = 0;
  std::vector<std::string> names;
  for (const Column& column : file_->columns())
    names.push_back(column.name);
  if (names_.empty())
    names_ = std::move(names);
  else
    files_.expect_columns(shown, names, names_);
}

void ParquetSource::do_go_to(const Bookmark& place) {
  const std::size_t file = files_.file_of(place.position);
  if (file != file_index_)
    open_file(file);
  const std::int64_t row = table::SourceFiles::line_of(place.position) - 1;
  if (row < 0 || row > file_->rows()) {
    throw DataError(files_.shown(file) + ": the file has " + std::to_string(file_->rows()) +
                    " rows, fewer than when it was read before");
  }
  row_ = row;
  reader_.reset();
}

void ParquetSource::read_columns_for(const table::RowSink& sink) {
  std::vector<std::size_t> wanted;
  for (std::size_t column = 0; column < sink.columns(); ++column) {
    if (sink.wants(column) != table::RowSink::Wants::kNothing)
      wanted.push_back(column);
  }
  if (wanted.empty()) {
    // Rows are counted as they are read: the footer may claim any number.
    const auto& columns = file_->columns();
    const auto readable = std::find_if(columns.begin(), columns.end(),
                                       [](const Column& column) { return column.refusal.empty(); });
    wanted.push_back(
        readable == columns.end() ? 0 : static_cast<std::size_t>(readable - columns.begin()));
  }
  if (reader_ && wanted == wanted_)
    return;
  wanted_ = std::move(wanted);
  reader_.emplace(*file_, wanted_);
  reader_->go_to(row_);
}

table::ColumnChunk ParquetSource::chunk_of(std::size_t place, const ColumnValues& values) {
  const Column& column = file_->columns()[place];
  Converted& converted = converted_[place];
  table::ColumnChunk chunk;
  chunk.valid = values.validity();
  if (column.kind == Kind::kDate) {
    const std::span<const std::int32_t> days = values.as<std::int32_t>();
    converted.counts.resize(days.size());
    for (std::size_t row = 0; row < days.size(); ++row)
      converted.counts[row] = days[row] * kSecondsOfADay;
    chunk.values = table::Timestamps{converted.counts, 1};
  } else if (column.kind == Kind::kTimestamp) {
    chunk.values = table::Timestamps{values.as<std::int64_t>(), column.ticks};
  } else if (column.kind == Kind::kTime) {
    const std::span<const std::int64_t> ticks = values.as<std::int64_t>();
    converted.numbers.resize(ticks.size());
    for (std::size_t row = 0; row < ticks.size(); ++row)
      converted.numbers[row] = static_cast<double>(ticks[row]) / static_cast<double>(column.ticks);
    chunk.values = std::span<const double>(converted.numbers);
  } else if (column.kind == Kind::kUnsigned && column.physical == Physical::kInt64) {
    const std::span<const std::int64_t> numbers = values.as<std::int64_t>();
    chunk.values = numbers;
    // Those above 2^63 are no int64.
    if (std::any_of(numbers.begin(), numbers.end(), [](std::int64_t n) { return n < 0; })) {
      converted.numbers.resize(numbers.size());
      for (std::size_t row = 0; row < numbers.size(); ++row)
        converted.numbers[row] = static_cast<double>(static_cast<std::uint64_t>(numbers[row]));
      chunk.values = std::span<const double>(converted.numbers);
    }
  } else {
    std::visit(
        [&](const auto& vector) {
          using Value = typename std::decay_t<decltype(vector)>::value_type;
          chunk.values = values.as<Value>();
        },
        values.values);
  }
  return chunk;
}

bool ParquetSource::do_read(table::RowSink& sink, std::int64_t rows) {
  read_columns_for(sink);
  while (rows > 0) {
    const std::size_t count = reader_->read(static_cast<std::size_t>(std::min(rows, kRowsAtOnce)));
    if (count == 0) {
      if (file_index_ + 1 == files_.size())
        return false;
      open_file(file_index_ + 1);
      read_columns_for(sink);
      continue;
    }
    std::vector<table::ColumnChunk> chunks(sink.columns());
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      chunks[wanted_[i]] = chunk_of(wanted_[i], reader_->values()[i]);
    sink.add(chunks, count, position());
    row_ += static_cast<std::int64_t>(count);
    rows -= static_cast<std::int64_t>(count);
  }
  return row_ < file_->rows() || file_index_ + 1 < files_.size();
}

}  // namespace treadle::parquet
