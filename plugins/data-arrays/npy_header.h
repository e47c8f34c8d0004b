#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "item.h"

namespace treadle::arrays {

/// What the header of a .npy file says (numpy.lib.format, versions 1.0 to 3.0).
struct NpyHeader {
  Item item = Item::kFloat32;
  std::vector<std::int64_t> shape;  ///< at least one extent; the first is the number of rows
  std::size_t data_offset = 0;      ///< where the numbers begin

  std::int64_t rows() const { return shape[0]; }
  std::vector<std::int64_t> row_shape() const { return {shape.begin() + 1, shape.end()}; }
  std::size_t row_items() const;
  std::size_t row_bytes() const { return row_items() * size_of(item); }
};

/// The bytes in front of the header's text, in every version.
constexpr std::size_t kMostPrefixBytes = 12;

/// Where the header's text lies, as the first bytes of a file say.
struct NpyPrefix {
  std::size_t text_begin = 0;
  std::size_t text_size = 0;
};

/// Reads the beginning of a file: kMostPrefixBytes, or fewer when there are no more. `shown` is the
/// file's name in messages. Throws DataError when this is no such file.
NpyPrefix read_npy_prefix(std::string_view start, const std::string& shown);

/// Reads the header's text. Throws DataError when it cannot be understood, or says that the numbers
/// are of a kind or in an order that cannot be read; the message says what to do.
NpyHeader read_npy_header(std::string_view text, const NpyPrefix& prefix, const std::string& shown);

/// `(1000, 20)`, as NumPy prints it.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace treadle::arrays
