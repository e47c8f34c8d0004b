#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <treadle/table/table_data.h>
#include <treadle/table/table_source.h>

#include "csv_options.h"
#include "csv_scanner.h"

namespace treadle::csv {

/// Reads a table from a text file. Positions are lines, offsets of bookmarks bytes.
class CsvSource final : public table::TableSource {
 public:
  /// `use` decides what messages advise.
  CsvSource(CsvOptions options, table::SourceUse use);

 private:
  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override;
  void do_go_to(const Bookmark& place) override { scanner_->go_to(place.offset, place.position); }
  std::string do_shown() const override { return shown_; }
  std::string do_place_of(std::int64_t position) const override {
    return shown_ + ":" + std::to_string(position);
  }
  std::string do_hash() const override;

  table::TableColumns read_columns();
  bool read_rows(table::RowSink& sink, std::int64_t rows);
  CsvScanner::After read_row(table::RowSink& sink, const char*& p);
  /// The sentence for a row with another number of fields than the header.
  std::string other_field_count(std::size_t expected, std::size_t count) const;
  /// For rows that cannot be cut: with the wrong separator, quotes are not where fields begin and
  /// end. Throws where another separator fits.
  void check_first_rows() const;
  void check_separator(std::int64_t line, const std::vector<std::string>& first,
                       const std::vector<std::string>& next) const;
  [[noreturn]] void fail_for_separator(std::int64_t line, const std::string& found,
                                       char other) const;

  CsvOptions options_;
  table::SourceUse use_;
  std::string shown_;
  std::optional<CsvScanner> scanner_;
  std::size_t fields_ = 0;
};

}  // namespace treadle::csv
