#include "thrift.h"

namespace treadle::parquet {
namespace {

bool is_integer(ThriftType type) {
  return type == ThriftType::kInt16 || type == ThriftType::kInt32 || type == ThriftType::kInt64;
}

ThriftType thrift_type(int number) {
  if (number > static_cast<int>(ThriftType::kUuid))
    throw Damage("a field has the unknown type " + std::to_string(number));
  return static_cast<ThriftType>(number);
}

}  // namespace

void ThriftReader::expect(ThriftField field, ThriftType type, const char* what) {
  if (field.type != type) {
    throw Damage("field " + std::to_string(field.id) + " is not " + what + " but of type " +
                 std::to_string(static_cast<int>(field.type)));
  }
}

ThriftField ThriftReader::next_field(int last) {
  const int head = cursor_.byte();
  if (head == 0)
    return {};
  const ThriftType type = thrift_type(head & 15);
  if (type == ThriftType::kStop)
    throw Damage("a field has no type");
  if (head >> 4 != 0)
    return {last + (head >> 4), type};
  const std::int64_t id = cursor_.zigzag();
  if (id < INT16_MIN || id > INT16_MAX)
    throw Damage("a field has the impossible number " + std::to_string(id));
  return {static_cast<int>(id), type};
}

std::size_t ThriftReader::begin_list(ThriftField field, ThriftType& type) {
  expect(field, ThriftType::kList, "a list");
  const int head = cursor_.byte();
  type = thrift_type(head & 15);
  const std::uint64_t count = head >> 4 == 15 ? cursor_.varint() : static_cast<unsigned>(head) >> 4;
  if (count > cursor_.left()) {
    throw Damage("a list of " + std::to_string(count) + " elements has " +
                 std::to_string(cursor_.left()) + " bytes");
  }
  return static_cast<std::size_t>(count);
}

std::int64_t ThriftReader::integer(ThriftField field) {
  if (field.type == ThriftType::kByte)
    return static_cast<std::int8_t>(cursor_.byte());
  if (!is_integer(field.type))
    expect(field, ThriftType::kInt64, "an integer");
  return cursor_.zigzag();
}

bool ThriftReader::boolean(ThriftField field) const {
  if (field.type != ThriftType::kTrue)
    expect(field, ThriftType::kFalse, "a truth value");
  return field.type == ThriftType::kTrue;
}

std::string_view ThriftReader::binary(ThriftField field) {
  expect(field, ThriftType::kBinary, "text");
  return cursor_.take(cursor_.varint());
}

void ThriftReader::skip_element(ThriftType type) {
  // Within lists and maps a truth value takes a byte.
  if (type == ThriftType::kTrue || type == ThriftType::kFalse) {
    cursor_.byte();
  } else {
    skip(type);
  }
}

void ThriftReader::skip(ThriftType type) {
  switch (type) {
    case ThriftType::kStop:
      throw Damage("a list has elements without a type");
    case ThriftType::kTrue:
    case ThriftType::kFalse:
      return;
    case ThriftType::kByte:
      cursor_.byte();
      return;
    case ThriftType::kInt16:
    case ThriftType::kInt32:
    case ThriftType::kInt64:
      cursor_.varint();
      return;
    case ThriftType::kDouble:
      cursor_.take(8);
      return;
    case ThriftType::kUuid:
      cursor_.take(16);
      return;
    case ThriftType::kBinary:
      cursor_.take(cursor_.varint());
      return;
    case ThriftType::kList:
    case ThriftType::kSet:
      each_element({0, ThriftType::kList},
                   [this](ThriftField element) { skip_element(element.type); });
      return;
    case ThriftType::kMap: {
      const Depth depth(*this);
      const std::uint64_t count = cursor_.varint();
      if (count == 0)
        return;
      if (count > cursor_.left())
        throw Damage("a map is longer than its bytes");
      const int types = cursor_.byte();
      for (std::uint64_t i = 0; i < count; ++i) {
        skip_element(thrift_type(types >> 4));
        skip_element(thrift_type(types & 15));
      }
      return;
    }
    case ThriftType::kStruct:
      each_field([](ThriftField) { return false; });
      return;
  }
}

void ThriftWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void ThriftWriter::zigzag(std::int64_t value) {
  varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void ThriftWriter::header(int id, ThriftType type) {
  const int step = id - last_ids_.back();
  last_ids_.back() = id;
  if (step > 0 && step < 16) {
    bytes_ += static_cast<char>(step << 4 | static_cast<int>(type));
  } else {
    bytes_ += static_cast<char>(type);
    zigzag(id);
  }
}

void ThriftWriter::number(int id, ThriftType type, std::int64_t value) {
  header(id, type);
  zigzag(value);
}

void ThriftWriter::small_integer(int id, std::int8_t value) {
  header(id, ThriftType::kByte);
  bytes_ += static_cast<char>(value);
}

void ThriftWriter::boolean(int id, bool value) {
  header(id, value ? ThriftType::kTrue : ThriftType::kFalse);
}

void ThriftWriter::binary(int id, std::string_view value) {
  header(id, ThriftType::kBinary);
  element(value);
}

void ThriftWriter::list(int id, ThriftType type, std::size_t count) {
  header(id, ThriftType::kList);
  const auto low = static_cast<unsigned>(type);
  if (count < 15) {
    bytes_ += static_cast<char>(count << 4 | low);
  } else {
    bytes_ += static_cast<char>(0xf0 | low);
    varint(count);
  }
}

void ThriftWriter::element(std::int64_t value) {
  zigzag(value);
}

void ThriftWriter::element(std::string_view value) {
  varint(value.size());
  bytes_ += value;
}

void ThriftWriter::begin(int id) {
  header(id, ThriftType::kStruct);
  begin_element();
}

void ThriftWriter::end() {
  bytes_ += '\0';
  last_ids_.pop_back();
}

}  // namespace treadle::parquet
