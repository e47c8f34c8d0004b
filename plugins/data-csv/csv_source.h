#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/table/source_files.h>
#include <treadle/table/table_data.h>
#include <treadle/table/table_source.h>

#include "csv_options.h"
#include "csv_scanner.h"

namespace treadle::csv {

/// Reads a table from text files, one after the other. A position is a line and the index of its
/// file, the offset of a bookmark a byte of the unpacked text.
class CsvSource final : public table::TableSource {
 public:
  /// `use` decides what messages advise.
  CsvSource(CsvOptions options, table::SourceUse use);

 private:
  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override;
  void do_go_to(const Bookmark& place) override;
  std::string do_shown() const override { return files_.shown(); }
  std::string do_place_of(std::int64_t position) const override;
  std::string do_remedy_for_comma(bool is_trained) const override;
  std::string do_hash() const override { return files_.hash(); }

  table::TableColumns read_columns();
  /// Goes to the first row of a file behind the first one.
  void open_file(std::size_t file);
  void check_header(std::int64_t line, const std::vector<std::string>& names) const;
  bool read_rows(table::RowSink& sink, std::int64_t rows);
  /// `kIsPlain`: numbers are in the plain notation.
  template <bool kIsPlain>
  CsvScanner::After read_row(table::RowSink& sink, const char*& p);
  void give(table::RowSink& sink, std::size_t column, std::string_view text);
  void end_row(table::RowSink& sink, std::size_t fields);
  std::int64_t position() const;
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
  table::SourceFiles files_;
  std::size_t file_ = 0;  // that is read
  std::optional<CsvScanner> scanner_;
  std::vector<std::string> names_;  // of the columns
  std::string plain_;               // a number in the plain notation
  std::string bad_number_;          // the sentence for the first one of the row
};

}  // namespace treadle::csv
