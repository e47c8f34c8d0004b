#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <treadle/table/row_sink.h>

namespace treadle::postgresql {

/// The reading of one column of a query: a cast on the server, and the meaning of the bytes of the
/// type it results in (PostgreSQL's binary format: big-endian).
enum class Reading : std::uint8_t {
  kBoolean,    ///< 0 or 1
  kInteger,    ///< of 2, 4 or 8 bytes
  kFloat,      ///< of 4 bytes
  kDouble,     ///< of 8 bytes; also of numeric, cast
  kDate,       ///< days since 2000-01-01
  kTimestamp,  ///< microseconds since 2000-01-01, UTC
  kText,
  kRefused  ///< read as text, but of no use for a table: bytes, arrays, intervals …
};

/// Of a type by its OID, as PostgreSQL's catalog has it (pg_type.dat), or for others by their
/// category in pg_type.
Reading reading_of(std::uint32_t type, char category);
/// The expression that a value of column `name` is read by.
std::string cast(Reading reading, std::uint32_t type, const std::string& name);

std::int64_t integer_of(std::string_view bytes);
double float_of(std::string_view bytes);
/// Nothing for an infinite date or timestamp.
std::optional<table::Timestamp> date_of(std::string_view bytes);
std::optional<table::Timestamp> timestamp_of(std::string_view bytes);

}  // namespace treadle::postgresql
