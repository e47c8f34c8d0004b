#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

/// Bytes of a stranger's file, and a cursor that never leaves them.
namespace treadle::parquet {

/// The bytes are not what the format asks for, or use what this reader lacks. The text names the
/// value at fault; file, column and page are added where they are known, as a DataError.
class Damage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads values from the front of some bytes; each call throws Damage where they end too early.
class ByteCursor {
 public:
  explicit ByteCursor(std::string_view bytes) : p_(bytes.data()), end_(p_ + bytes.size()) {}

  std::size_t left() const { return static_cast<std::size_t>(end_ - p_); }
  const char* position() const { return p_; }
  std::string_view rest() const { return {p_, left()}; }

  std::uint8_t byte() {
    need(1);
    return static_cast<std::uint8_t>(*p_++);
  }

  /// A number of fixed width, little-endian as all of Parquet and all machines Treadle runs on.
  template <typename T>
  T fixed() {
    need(sizeof(T));
    T value;
    std::memcpy(&value, p_, sizeof(T));
    p_ += sizeof(T);
    return value;
  }

  /// ULEB128.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint64_t part = byte();
      value |= (part & 0x7f) << shift;
      if (part < 0x80)
        return value;
    }
    throw Damage("a number has more than 64 bits");
  }

  std::int64_t zigzag() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
  }

  std::string_view take(std::uint64_t count) {
    need(count);
    const std::string_view taken(p_, static_cast<std::size_t>(count));
    p_ += count;
    return taken;
  }

 private:
  void need(std::uint64_t count) const {
    if (count > left()) [[unlikely]] {
      throw Damage("it ends too early: " + std::to_string(count) + " bytes are needed, " +
                   std::to_string(left()) + " are left");
    }
  }

  const char* p_;
  const char* end_;
};

}  // namespace treadle::parquet
