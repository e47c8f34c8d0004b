#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <treadle/base/component.h>

namespace treadle {

/// Writes a table: predictions, a history. A file, or a table of a database. One object, one table.
///
/// Its component is found by the name of the file, `-o predictions.parquet`: its schema lists the
/// endings under `x-treadle-extensions`, and its parameter of type `path` gets the file. Or it is
/// written out, as in documents: `-o '{"use": "postgresql", "table": "predictions"}'`.
///
/// Life: constructed from parameters (cheap, touches nothing) → open() → write() for each chunk of
/// rows → close(). Nothing is to be seen at its place before close() has returned, then all of it;
/// an object that is destroyed without close() leaves what was there before. One thread. Throws
/// StorageError for what cannot be written.
class TableWriter : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.writer/0";

  struct Column {
    enum class Type : std::uint8_t { kInteger, kFloat, kDouble, kText };

    std::string name;  ///< unique in its table
    Type type = Type::kText;
  };

  /// The values of one column, one for each row of a chunk, by Column::type: int64, float,
  /// double or UTF-8. Numbers may be NaN or infinite; no value is missing.
  using Values = std::variant<std::vector<std::int64_t>, std::vector<float>, std::vector<double>,
                              std::vector<std::string>>;

  ~TableWriter() override;

  void open(std::vector<Column> columns);
  /// Adds rows: for each column as many values, of its type. Expects open().
  void write(const std::vector<Values>& chunk);
  /// Makes the table what is at its place. Expects open(); no other call comes after it.
  void close();

 private:
  virtual void do_open(const std::vector<Column>& columns) = 0;
  virtual void do_write(const std::vector<Values>& chunk, std::size_t rows) = 0;
  virtual void do_close() = 0;

  std::vector<Column> columns_;
  bool open_ = false;
};

}  // namespace treadle
