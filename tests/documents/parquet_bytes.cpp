#include "parquet_bytes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

namespace treadle::testing {
namespace {

constexpr std::size_t kRowsOfAGroup = 13;

// As parquet.thrift numbers them.
constexpr int kInt32 = 1;
constexpr int kDouble = 5;
constexpr int kByteArray = 6;
constexpr int kUtf8 = 0;
constexpr int kDate = 6;
constexpr int kNone = -1;

// Thrift's compact protocol: a field is the step from the number of the field before, and its type.
constexpr int kI32 = 5;
constexpr int kI64 = 6;
constexpr int kBinary = 8;
constexpr int kList = 9;
constexpr int kStruct = 12;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string integer(int step, int type, std::size_t value) {
  return static_cast<char>(step << 4 | type) + varint(2 * value);
}

std::string text(std::string_view value) {
  return varint(value.size()) + std::string(value);
}

std::string list_of(int step, int type, std::size_t count) {
  return std::string(1, static_cast<char>(step << 4 | kList)) + static_cast<char>(0xf0 | type) +
         varint(count);
}

std::string begin(int step) {
  return std::string(1, static_cast<char>(step << 4 | kStruct));
}

const std::string kEnd(1, '\0');

template <typename T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::optional<double> number_in(const std::string& field) {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size())
    return std::nullopt;
  return value;
}

std::optional<std::int32_t> date_in(const std::string& field) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  if (field.size() != 10 || std::sscanf(field.c_str(), "%4d-%2u-%2u", &year, &month, &day) != 3)
    return std::nullopt;
  const std::chrono::sys_days days =
      std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day);
  return static_cast<std::int32_t>(days.time_since_epoch().count());
}

using Rows = std::vector<std::vector<std::string>>;

int type_of(const Rows& rows, std::size_t column) {
  const auto all_are = [&](const auto& is) {
    return std::all_of(rows.begin(), rows.end(), [&](const std::vector<std::string>& row) {
      return row[column].empty() || is(row[column]);
    });
  };
  if (all_are(number_in))
    return kDouble;
  return all_are(date_in) ? kInt32 : kByteArray;
}

// A data page with definition levels, one bit each.
std::string page_of(const Rows& rows, std::size_t first, std::size_t last, std::size_t column,
                    int type) {
  std::string bits((last - first + 7) / 8, '\0');
  std::string values;
  for (std::size_t row = first; row < last; ++row) {
    const std::string& field = rows[row][column];
    if (field.empty())
      continue;
    const std::size_t place = row - first;
    bits[place / 8] = static_cast<char>(bits[place / 8] | 1 << place % 8);
    values += type == kDouble  ? little(*number_in(field))
              : type == kInt32 ? little(*date_in(field))
                               : little(static_cast<std::uint32_t>(field.size())) + field;
  }
  const std::string levels = varint(bits.size() << 1 | 1) + bits;
  const std::string body = little(static_cast<std::uint32_t>(levels.size())) + levels + values;
  constexpr std::size_t kRle = 3;
  return integer(1, kI32, 0) + integer(1, kI32, body.size()) + integer(1, kI32, body.size()) +
         begin(2) + integer(1, kI32, last - first) + integer(1, kI32, 0) + integer(1, kI32, kRle) +
         integer(1, kI32, kRle) + kEnd + kEnd + body;
}

std::string schema_of(const std::string& name, int type) {
  const int converted = type == kByteArray ? kUtf8 : type == kInt32 ? kDate : kNone;
  return integer(1, kI32, static_cast<std::size_t>(type)) + integer(2, kI32, 1) +
         static_cast<char>(1 << 4 | kBinary) + text(name) +
         (converted == kNone ? "" : integer(2, kI32, static_cast<std::size_t>(converted))) + kEnd;
}

}  // namespace

std::string parquet_of(const std::vector<std::string>& names, const Rows& rows) {
  std::string file = "PAR1";
  std::string groups;
  std::size_t group_count = 0;
  std::vector<int> types;
  for (std::size_t column = 0; column < names.size(); ++column)
    types.push_back(type_of(rows, column));
  for (std::size_t first = 0; first < rows.size(); first += kRowsOfAGroup, ++group_count) {
    const std::size_t last = std::min(rows.size(), first + kRowsOfAGroup);
    groups += list_of(1, kStruct, names.size());
    for (std::size_t column = 0; column < names.size(); ++column) {
      const std::string page = page_of(rows, first, last, column, types[column]);
      groups += integer(2, kI64, 0) + begin(1) +
                integer(1, kI32, static_cast<std::size_t>(types[column])) + list_of(1, kI32, 0) +
                list_of(1, kBinary, 1) + text(names[column]) + integer(1, kI32, 0) +
                integer(1, kI64, last - first) + integer(1, kI64, page.size()) +
                integer(1, kI64, page.size()) + integer(2, kI64, file.size()) + kEnd + kEnd;
      file += page;
    }
    groups += integer(1, kI64, 0) + integer(1, kI64, last - first) + kEnd;
  }
  std::string footer = integer(1, kI32, 1) + list_of(1, kStruct, names.size() + 1);
  footer +=
      static_cast<char>(4 << 4 | kBinary) + text("root") + integer(1, kI32, names.size()) + kEnd;
  for (std::size_t column = 0; column < names.size(); ++column)
    footer += schema_of(names[column], types[column]);
  footer += integer(1, kI64, rows.size()) + list_of(1, kStruct, group_count) + groups + kEnd;
  return file + footer + little(static_cast<std::uint32_t>(footer.size())) + "PAR1";
}

}  // namespace treadle::testing
