#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <treadle/table/row_sink.h>

namespace treadle::table {

/// The columns of a source, and the words for messages about them.
struct TableColumns {
  /// In the source's order; empty for a column without a name.
  std::vector<std::string> names;
  /// False: columns are known by their place alone, and `names` are column_0, column_1, …
  bool are_named = true;
  /// Where the names are, for messages: "iris.csv:1", "the query".
  std::string place;
  /// Ends a message about names that cannot be right: "; if the file has no header line, …".
  std::string remedy;
  /// The message of a table without rows.
  std::string no_rows = "the table has no row";
};

/// At most so many columns are read.
inline constexpr std::int64_t kMostColumns = 65536;

/// Names for columns without one: column_0, column_1, …
std::vector<std::string> numbered_columns(std::size_t count);

/// Reads a table from a file or a database: its columns, then its rows in order. All that a source
/// of tables implements beside its parameters; TableData makes data of it.
///
///     class JsonlSource final : public TableSource { … };
///
/// Life: constructed (touches nothing) → columns() → read() until it returns false; restart() or
/// go_to() to read again. Throws DataError with the place in the file, what was expected and what
/// was found. One thread, but const functions are thread-safe once columns() has returned.
class TableSource {
 public:
  /// A place between two rows. The source decides what the numbers mean.
  struct Bookmark {
    std::int64_t position = 0;  ///< such as the line
    std::int64_t offset = 0;    ///< such as the byte in the file
  };

  TableSource() = default;
  TableSource(const TableSource&) = delete;
  TableSource& operator=(const TableSource&) = delete;
  virtual ~TableSource();

  /// Valid as long as the source. Opens it when called first.
  const TableColumns& columns();

  /// Gives the sink, which has columns().names.size() columns, up to `rows` more rows; false at
  /// the end of the table. A row given as a bad one counts.
  bool read(RowSink& sink, std::int64_t rows) { return do_read(sink, rows); }
  /// All that are left.
  void read(RowSink& sink);

  /// The next read() begins with the first row.
  void restart() { go_to(start_); }
  /// Where read() goes on. Expects columns().
  Bookmark bookmark() const { return do_bookmark(); }
  /// The next read() goes on there, with the same rows as before.
  void go_to(const Bookmark& place) { do_go_to(place); }

  /// The name of the source in messages: "data/iris.csv", "the query".
  std::string shown() const { return do_shown(); }
  /// The place of a row in messages: "iris.csv:17", "sales.parquet, row 17".
  std::string place_of(std::int64_t position) const { return do_place_of(position); }
  /// 32 hex digits over what can be read: equal for equal files. SourceHash, where no row is left
  /// out.
  std::string hash() const { return do_hash(); }

 private:
  virtual TableColumns do_open() = 0;
  virtual bool do_read(RowSink& sink, std::int64_t rows) = 0;
  virtual Bookmark do_bookmark() const = 0;
  virtual void do_go_to(const Bookmark& place) = 0;
  virtual std::string do_shown() const = 0;
  virtual std::string do_place_of(std::int64_t position) const = 0;
  virtual std::string do_hash() const = 0;

  bool is_open_ = false;
  TableColumns columns_;
  Bookmark start_;
};

}  // namespace treadle::table
