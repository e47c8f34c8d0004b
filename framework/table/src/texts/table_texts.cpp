#include "texts/table_texts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::table {
namespace {

/// Where each of `names` is among the columns.
std::vector<std::size_t> places_of(const std::vector<std::string>& names,
                                   const std::vector<std::string>& columns,
                                   const std::string& place) {
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end()) {
      throw DataError(place + ": no column " + quote_text(name) + " to keep; the columns are " +
                      quoted_list(columns) + did_you_mean(name, columns));
    }
    if (std::count(columns.begin(), columns.end(), name) > 1)
      throw DataError(place + ": the column " + quote_text(name) + " to keep is there twice");
    places.push_back(static_cast<std::size_t>(found - columns.begin()));
  }
  return places;
}

/// Keeps the texts of some columns of the rows at given positions.
class TextSink final : public RowSink {
 public:
  TextSink(const TableSource& source, std::size_t columns, const RowPositions& kept,
           const std::vector<std::size_t>& places)
      : RowSink(columns), source_(source), kept_(kept), lists_(columns), cells_(columns) {
    for (const std::size_t place : places)
      wants_[place] = Wants::kText;
  }

  /// The texts of one column.
  const std::vector<std::string>& texts(std::size_t column) const {
    if (next_ != kept_.rows())
      fail();
    return lists_[column];
  }

 private:
  void do_begin_row() override {}
  void do_text(std::size_t column, std::string_view value) override {
    if (wants_[column] != Wants::kNothing)
      cells_[column] = value;
  }
  void do_missing(std::size_t column) override { cells_[column].clear(); }
  // Rows in between were left out for a missing value.
  void do_end_row() override {
    if (next_ == kept_.rows() || position() < kept_.position_of(next_))
      return;
    if (position() > kept_.position_of(next_))
      fail();
    for (std::size_t column = 0; column < cells_.size(); ++column) {
      if (wants_[column] != Wants::kNothing)
        lists_[column].push_back(cells_[column]);
    }
    ++next_;
  }
  void do_bad_row(const std::string& problem) override {
    throw DataError(source_.place_of(position()) + ": " + problem);
  }

  [[noreturn]] void fail() const {
    throw DataError(source_.shown() + ": was changed while it was read, or can only be read once");
  }

  const TableSource& source_;
  const RowPositions& kept_;
  std::int64_t next_ = 0;  // of the kept rows
  std::vector<std::vector<std::string>> lists_;
  std::vector<std::string> cells_;
};

}  // namespace

std::vector<std::vector<std::string>> read_texts(TableSource& source, const RowPositions& kept,
                                                 const std::vector<std::string>& names) {
  const TableColumns& columns = source.columns();
  const std::vector<std::size_t> places = places_of(names, columns.names, source.shown());
  TextSink sink(source, columns.names.size(), kept, places);
  source.read(sink);
  std::vector<std::vector<std::string>> texts;
  for (const std::size_t place : places)
    texts.push_back(sink.texts(place));
  return texts;
}

}  // namespace treadle::table
