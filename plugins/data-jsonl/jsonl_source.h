#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/table/source_files.h>
#include <treadle/table/table_source.h>

#include "line_reader.h"

namespace treadle::jsonl {

class RowCells;

/// Reads a table from JSON Lines, of several files one after the other. Its columns are the keys of
/// all lines, in the order of their first appearance, which takes a pass of its own. A position is
/// a line and the index of its file, the offset of a bookmark a byte.
class JsonlSource final : public table::TableSource {
 public:
  explicit JsonlSource(std::vector<std::string> paths);
  ~JsonlSource() override;

 private:
  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override { return {position(), lines_->offset()}; }
  void do_go_to(const Bookmark& place) override;
  std::string do_shown() const override { return files_.shown(); }
  std::string do_place_of(std::int64_t position) const override;
  std::string do_hash() const override { return files_.hash(); }

  /// Goes to the first line of a file.
  LineReader& open_file(std::size_t file);
  std::int64_t position() const { return table::SourceFiles::position(file_, lines_->line()); }

  table::SourceFiles files_;
  std::size_t file_ = 0;  // of lines_
  std::optional<LineReader> lines_;
  std::unique_ptr<RowCells> cells_;
};

}  // namespace treadle::jsonl
