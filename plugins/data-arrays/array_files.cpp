#include "array_files.h"

#include <algorithm>

#include <treadle/base/error.h>

namespace treadle::arrays {

ArrayFiles::ArrayFiles(const std::vector<std::filesystem::path>& paths) {
  TREADLE_EXPECTS(!paths.empty(), "an array lies in at least one file");
  begins_.push_back(0);
  for (const std::filesystem::path& path : paths) {
    files_.emplace_back(path);
    begins_.push_back(begins_.back() + files_.back().rows());
  }
  if (rows() == 0) {
    throw DataError(shown() + (files_.size() == 1
                                   ? ": there is no row"
                                   : ": there is no row, neither here nor in the files after it"));
  }
  with_rows_ = find(0).file;
  for (const NpyFile& file : files_) {
    const NpyHeader& header = file.header();
    const NpyHeader& expected = layout().header();
    if (header.rows() == 0 ||
        (header.item == expected.item && header.row_shape() == expected.row_shape()))
      continue;
    const auto described = [](const NpyHeader& one) {
      return "shape " + shape_text(one.row_shape()) + " and type " + std::string(name_of(one.item));
    };
    throw DataError(file.shown() + ": rows have the " + described(header) + ", but those of " +
                    layout().shown() + " the " + described(expected) +
                    "; the files of one array must agree");
  }
}

ArrayFiles::Spot ArrayFiles::find(std::int64_t row) const {
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), row);
  const auto file = static_cast<std::size_t>(behind - begins_.begin()) - 1;
  return {file, row - begins_[file]};
}

std::string ArrayFiles::place_of(std::int64_t row) const {
  const Spot spot = find(row);
  return files_[spot.file].shown() + ": row " + std::to_string(spot.row);
}

std::string ArrayFiles::describe_row(std::int64_t row) const {
  const Spot spot = find(row);
  return "row " + std::to_string(spot.row) + " of " + files_[spot.file].shown();
}

Found PieceWalk::next() {
  if (error_)
    std::rethrow_exception(error_);
  try {
    return advance();
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

Found PieceWalk::advance() {
  if (file_ == array_.files().size())
    return Found::kEnd;
  const NpyFile& file = array_.files()[file_];
  if (file.rows() == 0) {
    ++file_;
    return Found::kSkipped;
  }
  rows_ = std::min(piece_rows_, file.rows() - next_in_file_);
  first_row_ = array_.begin_of(file_) + next_in_file_;
  bytes_.resize(static_cast<std::size_t>(rows_) * array_.row_bytes());
  file.read_rows(next_in_file_, rows_, bytes_);
  next_in_file_ += rows_;
  if (next_in_file_ == file.rows()) {
    ++file_;
    next_in_file_ = 0;
  }
  return Found::kPiece;
}

}  // namespace treadle::arrays
