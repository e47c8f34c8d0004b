#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format.h"

namespace treadle::parquet {

/// The meaning of a column's values, and how ColumnValues holds them.
enum class Kind : std::uint8_t {
  kBoolean,    ///< integers, 0 or 1
  kInteger,    ///< integers
  kUnsigned,   ///< integers, whose bits are an uint64
  kFloat,      ///< floats; also FLOAT16
  kDouble,     ///< doubles
  kDecimal,    ///< doubles: the nearest to the decimal number
  kDate,       ///< integers: days since 1970-01-01
  kTime,       ///< integers: ticks since midnight
  kTimestamp,  ///< integers: ticks since 1970-01-01T00:00:00
  kText        ///< UTF-8
};

/// A column of the schema.
struct Column {
  std::string name;
  std::size_t leaf = 0;  ///< its place among the columns of a row group
  Physical physical = Physical::kBoolean;
  Kind kind = Kind::kText;
  std::size_t width = 0;     ///< of FIXED_LEN_BYTE_ARRAY, bytes
  bool is_optional = false;  ///< values may be null
  bool is_uuid = false;      ///< texts are written out from 16 bytes
  int bits = 64;             ///< of integers
  int scale = 0;             ///< of decimals: digits behind the point
  std::int64_t ticks = 1;    ///< per second, of times
  bool is_utc = false;       ///< times are instants, not what a clock shows
  /// Why the column cannot be read; empty: it can. A file may have such columns as long as nobody
  /// reads them.
  std::string refusal;
};

/// The columns below the root of a schema. A group, which holds a list, a map or a struct, is one
/// column with a refusal. Throws Damage for a schema that is no tree.
std::vector<Column> columns_of(const std::vector<SchemaElement>& schema, std::size_t& leaves);

}  // namespace treadle::parquet
