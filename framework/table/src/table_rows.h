#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/calendar.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/row_problems.h>

#include <treadle/table/row_sink.h>
#include <treadle/table/table_source.h>

#include "cell_use.h"
#include "table_layout.h"
#include "values/parsed_rows.h"

namespace treadle::table {

/// How rows become data: everything is borrowed for as long as they are read.
struct RowPlan {
  const TableOptions& options;
  const OpenRequest& request;
  const TableLayout& layout;
  const FieldPlan& fields;
  /// The training data's, where the rows must fit it; null: they are the training data.
  const TableDescription* known;
};

/// The rows of a source as data: decides for each value what it becomes, is missing, drops its row
/// or is a problem. One set of rules for all sources.
class TableRows final : public RowSink {
 public:
  /// `source` gives the places of messages.
  TableRows(const TableSource& source, const RowPlan& plan);
  ~TableRows() override;

  /// The rows so far. Throws DataError with the first bad rows and the number of the others.
  ParsedRows finish();
  /// The rows read since the last call, without their dictionaries, which go on growing; throws as
  /// finish() does.
  ParsedRows take_rows();
  /// The dictionaries that take_rows() leaves here.
  const ParsedRows& so_far() const { return parsed_; }

 private:
  /// The place of a cell's value: in the current row of a port or target.
  struct FieldReader {
    Reads reads = Reads::kNothing;
    std::size_t part = 0;     // the port or target
    std::size_t slot = 0;     // the place in its row
    std::size_t feature = 0;  // of a feature: which one
  };
  /// A time as text or as a Timestamp.
  using Clock = DateFormat::Time;

  void do_begin_row() override;
  void do_text(std::size_t column, std::string_view value) override { take(column, value); }
  void do_missing(std::size_t column) override;
  void do_end_row() override;
  void do_bad_row(const std::string& sentence) override;
  void do_number(std::size_t column, double value) override;
  void do_integer(std::size_t column, std::int64_t value) override;
  void do_time(std::size_t column, const Timestamp& value) override;
  void do_add(std::span<const ColumnChunk> chunks, std::size_t rows, std::int64_t first) override;

  void make_parts();
  FieldReader reader_for(const FieldPlan::Entry& entry);
  /// Where a column's numbers may go as they are.
  void settle_place(std::size_t column);
  bool can_copy(std::span<const ColumnChunk> chunks) const;
  /// False where one of the rows needs a rule; nothing has changed then.
  bool copy_block(std::span<const ColumnChunk> chunks, std::size_t begin, std::size_t rows,
                  std::int64_t first);

  void take(std::size_t column, std::string_view text);
  void take_as(std::size_t column, FieldReader& reader, std::string_view text);
  void take_missing(std::size_t column, const FieldReader& reader, std::string_view text);
  bool take_number(std::size_t column, const FieldReader& reader, std::string_view text,
                   double& value);
  void take_category(std::size_t column, const FieldReader& reader, std::string_view text);
  void take_date(const FieldReader& reader, const Clock& clock);
  void take_class(std::size_t column, const FieldReader& reader, std::string_view text);
  void take_clock(std::size_t column, std::string_view text, const Clock& clock, bool is_date,
                  bool is_number);
  void check_distributions();
  void check_label_end();
  void decide_target(std::size_t column, FieldReader& reader, std::string_view text);
  std::int64_t add_label(std::size_t column, LabelDictionary& labels, std::string_view text);

  /// The current row's place for a number; expects a reader of those kinds.
  double& place_of(const FieldReader& reader) {
    const bool is_feature = reader.reads == Reads::kNumber;
    return rows_[is_feature ? reader.part : layout_.ports.size() + reader.part][reader.slot];
  }
  /// The numbers of the current row that a date becomes.
  std::span<double> date_of(const FieldReader& reader) {
    return {rows_[reader.part] + reader.slot, widths_[reader.feature]};
  }
  bool is_training() const { return request_.purpose == OpenRequest::Purpose::kTrain; }
  bool is_missing(std::string_view text) const;
  /// The advice for a text where a trained model needs a number to predict from.
  std::string remedy_for_text(const FieldReader& reader) const;
  std::string place() const { return source_.place_of(position()); }
  bool has_row_problems() const { return !row_problems_.empty() || unlisted_ > 0; }
  void row_problem(std::size_t column, const std::string& message);

  const TableSource& source_;
  const TableOptions& options_;
  const OpenRequest& request_;
  const TableLayout& layout_;
  const std::vector<std::string>& names_;
  const TableDescription* const known_;
  std::vector<FieldReader> fields_;
  std::vector<const DateFormat*> date_formats_;             // per column
  std::vector<std::pair<FieldReader, FieldReader>> twice_;  // per column, where it has two uses
  // Per feature: the calendar's parts that a date becomes, and how many numbers that are.
  std::vector<std::vector<const CalendarFeature*>> calendars_;
  std::vector<std::size_t> widths_;
  std::vector<Reads> target_reads_;  // per target; empty: none
  bool copies_ = false;              // every column in use is a plain number

  // The current row; it counts once it has ended well. RowSink::rows_ has its ports, then targets.
  std::vector<std::int64_t*> category_rows_;  // per port
  std::vector<std::int64_t> class_row_;       // per target
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

}  // namespace treadle::table
