#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "npy_file.h"

namespace treadle::arrays {

/// One array that lies in one file or in several, one after the other. Files without rows do no
/// harm. Immutable after construction; may be used from any thread.
class ArrayFiles {
 public:
  /// Expects at least one path. Throws DataError when a file cannot be read, the files' rows
  /// differ in type or shape, or there is no row at all.
  explicit ArrayFiles(const std::vector<std::filesystem::path>& paths);

  Item item() const { return layout().header().item; }
  std::vector<std::int64_t> row_shape() const { return layout().header().row_shape(); }
  std::size_t row_items() const { return layout().header().row_items(); }
  std::size_t row_bytes() const { return layout().header().row_bytes(); }
  std::int64_t rows() const { return begins_.back(); }

  const std::vector<NpyFile>& files() const { return files_; }
  /// The array's first row in a file.
  std::int64_t begin_of(std::size_t file) const { return begins_[file]; }

  /// A row of the array as a row of a file.
  struct Spot {
    std::size_t file = 0;
    std::int64_t row = 0;
  };
  Spot find(std::int64_t row) const;

  /// The array's name in messages: its first file's.
  const std::string& shown() const { return files_[0].shown(); }
  /// "x-1.npy: row 17".
  std::string place_of(std::int64_t row) const;
  /// "row 17 of x-1.npy".
  std::string describe_row(std::int64_t row) const;

 private:
  const NpyFile& layout() const { return files_[with_rows_]; }

  std::vector<NpyFile> files_;
  std::vector<std::int64_t> begins_;  // one more than files: the last is the number of rows
  std::size_t with_rows_ = 0;         // the first file that has some
};

/// An array read from the beginning to its end, in pieces of the files' own bytes.
///
///     for (PieceWalk walk(array, rows); (found = walk.next()) != Found::kEnd;) { … }
enum class Found : std::uint8_t {
  kPiece,    ///< some rows of one file
  kSkipped,  ///< a file without rows
  kEnd       ///< no more, now and ever
};

class PieceWalk {
 public:
  /// `array` must outlive the walk. Pieces have `piece_rows` rows, or what a file has left.
  PieceWalk(const ArrayFiles& array, std::int64_t piece_rows)
      : array_(array), piece_rows_(piece_rows) {}

  /// What it throws once, a DataError naming file and rows, it throws each time.
  Found next();

  /// The piece's bytes and its first row in the array; valid until the next call.
  std::span<const std::byte> bytes() const { return bytes_; }
  std::int64_t first_row() const { return first_row_; }
  std::int64_t rows() const { return rows_; }

 private:
  Found advance();

  const ArrayFiles& array_;
  std::int64_t piece_rows_;
  std::size_t file_ = 0;
  std::int64_t next_in_file_ = 0;
  std::vector<std::byte> bytes_;
  std::int64_t first_row_ = 0;
  std::int64_t rows_ = 0;
  std::exception_ptr error_;
};

}  // namespace treadle::arrays
