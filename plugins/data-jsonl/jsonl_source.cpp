#include "jsonl_source.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "json_cells.h"

namespace treadle::jsonl {
namespace {

/// Numbers for names, the next one guessed: rows mostly have the keys of the row before.
class ColumnNumbers {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit ColumnNumbers(std::vector<std::string> names = {}) : names_(std::move(names)) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      numbers_.emplace(names_[i], i);
  }

  std::size_t find(std::string_view name) {
    if (guess_ >= names_.size() || names_[guess_] != name) {
      const auto found = numbers_.find(name);
      if (found == numbers_.end())
        return kNone;
      guess_ = found->second;
    }
    const std::size_t number = guess_;
    guess_ = number + 1 == names_.size() ? 0 : number + 1;
    return number;
  }
  std::size_t add(std::string_view name) {
    names_.emplace_back(name);
    numbers_.emplace(names_.back(), names_.size() - 1);
    return names_.size() - 1;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> numbers_;
  std::size_t guess_ = 0;
};

/// Collects the keys of all lines.
class KeyCells final : public JsonCells {
 public:
  explicit KeyCells(std::string shown) : shown_(std::move(shown)) {}

  /// A key that is null in each line is a column without a value, unless others have keys in it.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < keys_.names().size(); ++i) {
      const std::string& name = keys_.names()[i];
      const auto is_inside = [&](const std::string& other) {
        return other.size() > name.size() && other.starts_with(name) && other[name.size()] == '.';
      };
      if (has_value_[i] || std::none_of(keys_.names().begin(), keys_.names().end(), is_inside)) {
        names.push_back(name);
      }
    }
    return names;
  }

 private:
  bool add(std::string_view name, bool has_value) {
    std::size_t number = keys_.find(name);
    if (number == ColumnNumbers::kNone) {
      if (keys_.names().size() == static_cast<std::size_t>(table::kMostColumns)) {
        throw DataError(shown_ + ": the objects have more than " +
                        std::to_string(table::kMostColumns) +
                        " different keys; at most as many "
                        "columns can be read");
      }
      number = keys_.add(name);
      has_value_.push_back(false);
    }
    if (has_value)
      has_value_[number] = true;
    return true;
  }
  bool do_null(std::string_view name) override { return add(name, false); }
  bool do_number(std::string_view name, double) override { return add(name, true); }
  bool do_integer(std::string_view name, std::int64_t) override { return add(name, true); }
  bool do_text(std::string_view name, std::string_view) override { return add(name, true); }

  std::string shown_;
  ColumnNumbers keys_;
  std::vector<bool> has_value_;
};

}  // namespace

/// Gives the cells of a line to a sink.
class RowCells final : public JsonCells {
 public:
  explicit RowCells(std::vector<std::string> names)
      : columns_(std::move(names)), rows_(columns_.names().size(), 0) {}

  void read_row(std::string_view line, std::int64_t position, table::RowSink& sink) {
    sink_ = &sink;
    ++row_;
    sink.begin_row(position);
    if (const std::string problem = read(line); !problem.empty())
      return sink.bad_row(problem);
    for (std::size_t column = 0; column < rows_.size(); ++column) {
      if (rows_[column] != row_ && sink.wants(column) != table::RowSink::Wants::kNothing)
        sink.missing(column);
    }
    sink.end_row();
  }

 private:
  /// The column of a cell, which is given once in a row; kNone after fail().
  bool take(std::string_view name, std::size_t& column) {
    column = columns_.find(name);
    if (column == ColumnNumbers::kNone)
      return fail("has the key " + quote_text(name) + ", which no line had; the file was changed");
    if (std::exchange(rows_[column], row_) == row_)
      return fail("has the key " + quote_text(name) + " twice");
    return true;
  }
  // A column of another name may begin with it: {"a": null} where others have {"a": {"b": 1}}.
  bool do_null(std::string_view name) override {
    std::size_t column = columns_.find(name);
    if (column == ColumnNumbers::kNone)
      return true;
    if (!take(name, column))
      return false;
    if (sink_->wants(column) != table::RowSink::Wants::kNothing)
      sink_->missing(column);
    return true;
  }
  bool do_number(std::string_view name, double value) override {
    std::size_t column = 0;
    if (!take(name, column))
      return false;
    sink_->number(column, value);
    return true;
  }
  bool do_integer(std::string_view name, std::int64_t value) override {
    std::size_t column = 0;
    if (!take(name, column))
      return false;
    sink_->integer(column, value);
    return true;
  }
  bool do_text(std::string_view name, std::string_view value) override {
    std::size_t column = 0;
    if (!take(name, column))
      return false;
    if (sink_->wants(column) != table::RowSink::Wants::kNothing)
      sink_->text(column, value);
    return true;
  }

  ColumnNumbers columns_;
  std::vector<std::int64_t> rows_;  // the last row in which each column had a cell
  std::int64_t row_ = 0;
  table::RowSink* sink_ = nullptr;  // during read_row()
};

JsonlSource::JsonlSource(std::vector<std::string> paths) : files_(std::move(paths)) {}

JsonlSource::~JsonlSource() = default;

std::string JsonlSource::do_place_of(std::int64_t position) const {
  return files_.shown(files_.file_of(position)) + ":" +
         std::to_string(table::SourceFiles::line_of(position));
}

LineReader& JsonlSource::open_file(std::size_t file) {
  file_ = file;
  return lines_.emplace(files_[file], files_.shown(file));
}

void JsonlSource::do_go_to(const Bookmark& place) {
  if (const std::size_t file = files_.file_of(place.position); file != file_)
    open_file(file);
  lines_->go_to(place.offset, table::SourceFiles::line_of(place.position));
}

table::TableColumns JsonlSource::do_open() {
  files_.find();
  KeyCells keys(files_.shown());
  std::string_view line;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    LineReader& lines = open_file(file);
    const std::int64_t start = lines.offset();
    while (lines.next(line))
      keys.read(line);      // bad lines are listed when rows are read
    lines.go_to(start, 0);  // refuses a pipe, which cannot be read twice
  }
  std::vector<std::string> names = keys.names();
  LineReader& lines = file_ == 0 ? *lines_ : open_file(0);
  cells_ = std::make_unique<RowCells>(names);
  if (names.empty()) {
    if (!lines.next(line))
      throw DataError(files_.shown(0) + ": the file is empty");
    const std::string problem = keys.read(line);
    throw DataError(do_place_of(position()) + ": " +
                    (problem.empty() ? "the object has no key" : problem));
  }
  return {std::move(names), true, files_.shown(), ""};
}

bool JsonlSource::do_read(table::RowSink& sink, std::int64_t rows) {
  std::string_view line;
  while (rows > 0) {
    if (lines_->next(line)) {
      cells_->read_row(line, position(), sink);
      --rows;
    } else if (file_ + 1 < files_.size()) {
      open_file(file_ + 1);
    } else {
      return false;
    }
  }
  return lines_->has_next() || file_ + 1 < files_.size();
}

}  // namespace treadle::jsonl
