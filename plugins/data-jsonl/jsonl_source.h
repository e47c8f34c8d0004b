#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <treadle/table/table_source.h>

#include "line_reader.h"

namespace treadle::jsonl {

class RowCells;

/// Reads a table from JSON Lines. Its columns are the keys of all lines, in the order of their
/// first appearance, which takes a pass of its own. Positions are lines, offsets of bookmarks
/// bytes.
class JsonlSource final : public table::TableSource {
 public:
  explicit JsonlSource(std::filesystem::path path);
  ~JsonlSource() override;

 private:
  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override { return {lines_->line(), lines_->offset()}; }
  void do_go_to(const Bookmark& place) override { lines_->go_to(place.offset, place.position); }
  std::string do_shown() const override { return shown_; }
  std::string do_place_of(std::int64_t position) const override {
    return shown_ + ":" + std::to_string(position);
  }
  std::string do_hash() const override;

  std::filesystem::path path_;
  std::string shown_;
  std::optional<LineReader> lines_;
  std::unique_ptr<RowCells> cells_;
};

}  // namespace treadle::jsonl
