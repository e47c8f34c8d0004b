#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bytes.h"

/// Thrift's compact protocol, in which Parquet's footer and page headers are written.
namespace treadle::parquet {

/// The types of fields and elements, as the protocol numbers them.
enum class ThriftType : std::uint8_t {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kByte = 3,
  kInt16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
  kUuid = 13
};

/// Reads structs field by field:
///
///     reader.each_field([&](ThriftField field) {
///       if (field.id == 3) { rows = reader.integer(field); return true; }
///       return false;  // passed over
///     });
///
/// Throws Damage for bytes that are no struct, for a field of another type than asked for, and for
/// structs nested deeper than any of Parquet's.
struct ThriftField {
  int id = 0;
  ThriftType type = ThriftType::kStop;
};

class ThriftReader {
 public:
  explicit ThriftReader(std::string_view bytes) : cursor_(bytes) {}

  const char* position() const { return cursor_.position(); }

  template <typename Read>
  void each_field(const Read& read) {
    const Depth depth(*this);
    int last = 0;
    for (;;) {
      const ThriftField field = next_field(last);
      if (field.type == ThriftType::kStop)
        return;
      last = field.id;
      if (!read(field))
        skip(field.type);
    }
  }

  /// Calls `read` for each element of a list, whose elements have the type passed to it.
  template <typename Read>
  void each_element(ThriftField field, const Read& read) {
    const Depth depth(*this);
    ThriftType type = ThriftType::kStop;
    const std::size_t count = begin_list(field, type);
    for (std::size_t i = 0; i < count; ++i)
      read(ThriftField{0, type});
  }

  std::int64_t integer(ThriftField field);
  bool boolean(ThriftField field) const;
  std::string_view binary(ThriftField field);
  /// Expects the type of a struct, whose fields each_field() then reads.
  void expect_struct(ThriftField field) const { expect(field, ThriftType::kStruct, "a struct"); }

 private:
  class Depth {
   public:
    explicit Depth(ThriftReader& reader) : reader_(reader) {
      if (++reader_.depth_ > 24)
        throw Damage("structs are nested deeper than any of Parquet's");
    }
    ~Depth() { --reader_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ThriftReader& reader_;
  };

  static void expect(ThriftField field, ThriftType type, const char* what);
  ThriftField next_field(int last);
  std::size_t begin_list(ThriftField field, ThriftType& type);
  void skip(ThriftType type);
  void skip_element(ThriftType type);

  ByteCursor cursor_;
  int depth_ = 0;
};

/// Writes structs: field by field in ascending order of id, then end().
class ThriftWriter {
 public:
  void integer(int id, std::int32_t value) { number(id, ThriftType::kInt32, value); }
  void long_integer(int id, std::int64_t value) { number(id, ThriftType::kInt64, value); }
  void small_integer(int id, std::int8_t value);
  void boolean(int id, bool value);
  void binary(int id, std::string_view value);
  /// A list of `count` elements, which follow: structs as begin_element() … end(), others by
  /// element().
  void list(int id, ThriftType type, std::size_t count);
  void element(std::int64_t value);
  void element(std::string_view value);
  void begin_element() { last_ids_.push_back(0); }
  /// A struct as the value of a field.
  void begin(int id);
  void end();

  const std::string& bytes() const { return bytes_; }

 private:
  void header(int id, ThriftType type);
  void number(int id, ThriftType type, std::int64_t value);
  void varint(std::uint64_t value);
  void zigzag(std::int64_t value);

  std::string bytes_;
  std::vector<int> last_ids_ = {0};  // of each open struct
};

}  // namespace treadle::parquet
