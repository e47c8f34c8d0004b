#include "column_type.h"

#include <utility>

#include <treadle/base/utf8.h>

#include "bytes.h"

namespace treadle::parquet {
namespace {

constexpr std::int64_t kMillis = 1'000;
constexpr std::int64_t kMicros = 1'000'000;
constexpr std::int64_t kMostDigits = 38;        // of a decimal, as 128 bits hold
constexpr std::int64_t kWidestValue = 1 << 20;  // bytes of FIXED_LEN_BYTE_ARRAY
constexpr std::size_t kWidestDecimal = 16;

// Annotations of either kind as LogicalType has them.
void modernize(SchemaElement& element) {
  if (element.logical != Logical::kNone)
    return;
  const auto integer = [&element](std::int64_t bits, bool is_signed) {
    element.logical = Logical::kInteger;
    element.bits = bits;
    element.is_signed = is_signed;
  };
  const auto time = [&element](Logical logical, std::int64_t ticks) {
    element.logical = logical;
    element.ticks = ticks;
    element.is_utc = true;
  };
  switch (element.converted) {
    case Converted::kUtf8:
      element.logical = Logical::kString;
      return;
    case Converted::kEnum:
      element.logical = Logical::kEnum;
      return;
    case Converted::kDecimal:
      element.logical = Logical::kDecimal;
      return;
    case Converted::kDate:
      element.logical = Logical::kDate;
      return;
    case Converted::kTimeMillis:
      return time(Logical::kTime, kMillis);
    case Converted::kTimeMicros:
      return time(Logical::kTime, kMicros);
    case Converted::kTimestampMillis:
      return time(Logical::kTimestamp, kMillis);
    case Converted::kTimestampMicros:
      return time(Logical::kTimestamp, kMicros);
    case Converted::kUint8:
      return integer(8, false);
    case Converted::kUint16:
      return integer(16, false);
    case Converted::kUint32:
      return integer(32, false);
    case Converted::kUint64:
      return integer(64, false);
    case Converted::kInt8:
      return integer(8, true);
    case Converted::kInt16:
      return integer(16, true);
    case Converted::kInt32:
      return integer(32, true);
    case Converted::kInt64:
      return integer(64, true);
    case Converted::kJson:
      element.logical = Logical::kJson;
      return;
    case Converted::kBson:
      element.logical = Logical::kBson;
      return;
    case Converted::kNone:
    case Converted::kInterval:
      return;
  }
}

std::string shown(const SchemaElement& element) {
  return name_of(*element.physical) + (element.physical == Physical::kFixed
                                           ? " of " + std::to_string(element.length) + " bytes"
                                           : std::string());
}

void refuse(Column& column, const SchemaElement& element, const char* what) {
  column.refusal = std::string("it is ") + what + ", stored as " + shown(element);
}

void set_integer(Column& column, const SchemaElement& element) {
  column.kind = element.is_signed ? Kind::kInteger : Kind::kUnsigned;
  const bool is_32 = element.physical == Physical::kInt32;
  if (!is_32 && element.physical != Physical::kInt64)
    return refuse(column, element, "an integer");
  column.bits = is_32 ? 32 : 64;
}

void set_time(Column& column, const SchemaElement& element) {
  const bool is_time = element.logical == Logical::kTime;
  column.kind = is_time ? Kind::kTime : Kind::kTimestamp;
  column.ticks = element.ticks;
  column.is_utc = element.is_utc;
  const bool fits =
      element.physical == Physical::kInt64 || (is_time && element.physical == Physical::kInt32);
  if (!fits)
    return refuse(column, element, is_time ? "a time" : "a timestamp");
  if (element.ticks == 0)
    column.refusal = "its unit of time is unknown";
}

void set_decimal(Column& column, const SchemaElement& element) {
  column.kind = Kind::kDecimal;
  if (element.scale < 0 || element.scale > kMostDigits) {
    column.refusal =
        "it is a decimal number with " + std::to_string(element.scale) + " digits behind the point";
    return;
  }
  column.scale = static_cast<int>(element.scale);
  const bool fits = element.physical == Physical::kInt32 || element.physical == Physical::kInt64 ||
                    element.physical == Physical::kByteArray ||
                    (element.physical == Physical::kFixed && column.width <= kWidestDecimal);
  if (!fits)
    refuse(column, element, "a decimal number");
}

// By the physical type alone.
void set_plain(Column& column, const SchemaElement& element) {
  switch (*element.physical) {
    case Physical::kBoolean:
      column.kind = Kind::kBoolean;
      return;
    case Physical::kInt32:
      column.kind = Kind::kInteger;
      column.bits = 32;
      return;
    case Physical::kInt64:
      column.kind = Kind::kInteger;
      return;
    case Physical::kInt96:
      column.kind = Kind::kTimestamp;
      column.ticks = kMicros;
      return;
    case Physical::kFloat:
      column.kind = Kind::kFloat;
      return;
    case Physical::kDouble:
      column.kind = Kind::kDouble;
      return;
    case Physical::kByteArray:
      column.kind = Kind::kText;
      return;
    case Physical::kFixed:
      column.kind = Kind::kText;
      if (element.converted == Converted::kInterval)
        column.refusal = "it is an interval of time";
      return;
  }
}

void set_kind(Column& column, const SchemaElement& element) {
  const bool is_bytes = element.physical == Physical::kByteArray;
  switch (element.logical) {
    case Logical::kNone:
    case Logical::kUnknown:
      return set_plain(column, element);
    case Logical::kString:
    case Logical::kEnum:
    case Logical::kJson:
      column.kind = Kind::kText;
      if (!is_bytes)
        refuse(column, element, "text");
      return;
    case Logical::kDecimal:
      return set_decimal(column, element);
    case Logical::kDate:
      column.kind = Kind::kDate;
      if (element.physical != Physical::kInt32)
        refuse(column, element, "a date");
      return;
    case Logical::kTime:
    case Logical::kTimestamp:
      return set_time(column, element);
    case Logical::kInteger:
      return set_integer(column, element);
    case Logical::kUuid:
      column.kind = Kind::kText;
      column.is_uuid = true;
      if (element.physical != Physical::kFixed || column.width != 16)
        refuse(column, element, "a UUID");
      return;
    case Logical::kFloat16:
      column.kind = Kind::kFloat;
      if (element.physical != Physical::kFixed || column.width != 2)
        refuse(column, element, "a FLOAT16");
      return;
    case Logical::kBson:
      column.refusal = "it holds BSON";
      return;
    case Logical::kMap:
    case Logical::kList:
      column.refusal = "it is a list or a map";
      return;
  }
  column.refusal = "its logical type, number " + std::to_string(static_cast<int>(element.logical)) +
                   ", is not supported";
}

Column column_of(SchemaElement element, std::size_t leaf) {
  Column column;
  column.name = element.name;
  column.leaf = leaf;
  column.physical = *element.physical;
  column.is_optional = element.repetition == Repetition::kOptional;
  modernize(element);
  if (element.physical == Physical::kFixed) {
    if (element.length < 1 || element.length > kWidestValue) {
      column.refusal = "its values have " + std::to_string(element.length) + " bytes each";
      return column;
    }
    column.width = static_cast<std::size_t>(element.length);
  }
  if (element.repetition != Repetition::kRequired && element.repetition != Repetition::kOptional) {
    column.refusal = "it has several values in a row";
    return column;
  }
  set_kind(column, element);
  return column;
}

const char* group_kind(const SchemaElement& element) {
  constexpr auto kConvertedMap = static_cast<Converted>(1);
  constexpr auto kConvertedList = static_cast<Converted>(3);
  if (element.logical == Logical::kList || element.converted == kConvertedList)
    return "it is a list";
  if (element.logical == Logical::kMap || element.converted == kConvertedMap)
    return "it is a map";
  return "it is a struct of columns";
}

}  // namespace

std::vector<Column> columns_of(const std::vector<SchemaElement>& schema, std::size_t& leaves) {
  leaves = 0;
  std::vector<Column> columns;
  std::size_t i = 1;
  const SchemaElement& root = schema.front();
  if (root.physical)
    throw Damage("the root of the schema is no group");
  for (std::int64_t child = 0; child < root.children; ++child) {
    if (i >= schema.size())
      throw Damage("the schema ends before its last column");
    const SchemaElement& element = schema[i];
    if (element.physical) {
      columns.push_back(column_of(element, leaves));
      ++leaves;
      ++i;
      continue;
    }
    Column group;
    group.name = element.name;
    group.leaf = leaves;
    group.refusal = group_kind(element);
    columns.push_back(std::move(group));
    // Everything below it, depth first.
    for (std::int64_t open = 1; open > 0; ++i) {
      if (i >= schema.size())
        throw Damage("the schema ends within a group");
      const std::int64_t below = schema[i].physical ? 0 : schema[i].children;
      if (below > static_cast<std::int64_t>(schema.size()))
        throw Damage("a group of the schema has more columns than the file");
      open += below - 1;
      if (schema[i].physical)
        ++leaves;
    }
  }
  if (i != schema.size())
    throw Damage("the schema has columns outside of its root");
  for (std::size_t place = 0; place < columns.size(); ++place) {
    if (first_bad_utf8(columns[place].name))
      throw Damage("the name of column " + std::to_string(place) + " is not UTF-8");
  }
  return columns;
}

}  // namespace treadle::parquet
