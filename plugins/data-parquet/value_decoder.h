#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "column_type.h"
#include "column_values.h"

namespace treadle::parquet {

/// Bytes that texts may outlive their page in.
using SharedBytes = std::shared_ptr<const char[]>;

/// Makes values of what a column's pages store: numbers of the column's kind, or texts. One object
/// per column; dictionaries are those of the current column chunk.
class ValueDecoder {
 public:
  virtual ~ValueDecoder() = default;

  /// Begins a column chunk, which has no dictionary yet.
  virtual void begin_chunk() = 0;
  virtual void set_dictionary(const SharedBytes& owner, std::string_view bytes,
                              std::size_t count) = 0;
  /// Begins a page. `bytes` are its values, without levels, and lie in `owner`.
  virtual void begin_page(Encoding encoding, const SharedBytes& owner, std::string_view bytes) = 0;

  /// Gives the vector of `out` room for `rows` values.
  virtual void make_room(ColumnValues& out, std::size_t rows) const = 0;
  /// Decodes the next `count` values that are not null to the places from `at` on.
  virtual void read(ColumnValues& out, std::size_t at, std::size_t count) = 0;
  /// Moves the `count` values from `at` on to those of the `rows` places from `at` on that are
  /// valid.
  virtual void spread(ColumnValues& out, std::size_t at, std::size_t count,
                      std::size_t rows) const = 0;
};

/// Expects a column without a refusal.
std::unique_ptr<ValueDecoder> make_decoder(const Column& column);

}  // namespace treadle::parquet
