#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/base/hash.h>
#include <treadle/core/data/row_reader.h>

#include <treadle/table/table_data.h>

namespace treadle::table {

/// Nothing for a missing value.
using Cell = std::variant<std::monostate, double, std::int64_t, std::string, Timestamp>;

/// A table that a test writes down.
struct Listed {
  std::vector<std::string> names;
  std::vector<std::vector<Cell>> rows;
  bool by_column = false;  ///< given in chunks of three rows; columns of numbers alone
};

/// Reads a Listed, at positions from 1.
class ListedSource final : public TableSource {
 public:
  explicit ListedSource(std::shared_ptr<const Listed> table) : table_(std::move(table)) {}

 private:
  TableColumns do_open() override { return {table_->names, true, "the list", ""}; }
  bool do_read(RowSink& sink, std::int64_t rows) override {
    const auto end = static_cast<std::int64_t>(table_->rows.size());
    while (rows > 0 && next_ < end) {
      const std::int64_t count =
          table_->by_column ? std::min<std::int64_t>({3, rows, end - next_}) : 1;
      if (table_->by_column)
        give_chunk(sink, count);
      else
        give_row(sink);
      next_ += count;
      rows -= count;
    }
    return next_ < end;
  }
  Bookmark do_bookmark() const override { return {next_, 0}; }
  void do_go_to(const Bookmark& place) override { next_ = place.position; }
  std::string do_shown() const override { return "the list"; }
  std::string do_place_of(std::int64_t position) const override {
    return "the list, row " + std::to_string(position);
  }
  std::string do_hash() const override { return hash_text(std::to_string(table_->rows.size())); }

  void give_row(RowSink& sink) const {
    const std::vector<Cell>& row = table_->rows[static_cast<std::size_t>(next_)];
    sink.begin_row(next_ + 1);
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (const auto* number = std::get_if<double>(&row[column]))
        sink.number(column, *number);
      else if (const auto* integer = std::get_if<std::int64_t>(&row[column]))
        sink.integer(column, *integer);
      else if (const auto* text = std::get_if<std::string>(&row[column]))
        sink.text(column, *text);
      else if (const auto* time = std::get_if<Timestamp>(&row[column]))
        sink.time(column, *time);
      else
        sink.missing(column);
    }
    sink.end_row();
  }

  void give_chunk(RowSink& sink, std::int64_t count) const {
    const std::size_t width = table_->names.size();
    std::vector<std::vector<double>> values(width);
    std::vector<std::vector<std::uint8_t>> valid(width);
    std::vector<ColumnChunk> chunks(width);
    for (std::size_t column = 0; column < width; ++column) {
      bool is_whole = true;
      for (std::int64_t i = 0; i < count; ++i) {
        const Cell& cell = table_->rows[static_cast<std::size_t>(next_ + i)][column];
        const auto* const number = std::get_if<double>(&cell);
        values[column].push_back(number != nullptr ? *number : 0);
        valid[column].push_back(number != nullptr ? 1 : 0);
        is_whole = is_whole && number != nullptr;
      }
      chunks[column].values = std::span<const double>(values[column]);
      if (!is_whole)
        chunks[column].valid = valid[column];
    }
    sink.add(chunks, static_cast<std::size_t>(count), next_ + 1);
  }

  std::shared_ptr<const Listed> table_;
  std::int64_t next_ = 0;
};

/// Data over a Listed, which may be changed behind its back.
class ListedData final : public TableData {
 public:
  explicit ListedData(Listed table, const nlohmann::json& parameters = nlohmann::json::object())
      : TableData(Config(parameters), {}), table_(std::make_shared<Listed>(std::move(table))) {}

  Listed& table() { return *table_; }

 private:
  std::unique_ptr<TableSource> do_source(SourceUse) const override {
    return std::make_unique<ListedSource>(table_);
  }

  std::shared_ptr<Listed> table_;
};

/// All rows of data in memory.
inline Batch all_rows(const DataProvider& data) {
  const RowReader& reader = *data.ask<RowReader>();
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < reader.rows(); ++row)
    rows.push_back(row);
  Batch batch;
  reader.gather(rows, batch);
  return batch;
}

inline std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

/// The message of an error, or "no error".
template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace treadle::table
