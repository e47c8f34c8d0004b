#include "value_decoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <treadle/base/utf8.h>

#include "bit_packing.h"
#include "bytes.h"
#include "raw_values.h"

namespace treadle::parquet {
namespace {

using Owners = std::vector<std::shared_ptr<const char[]>>;

constexpr std::size_t kBlock = 1024;  // values decoded at once where they are converted
constexpr std::size_t kMostEntries = std::size_t{8} << 20;

// Conversions of stored values, many at once.

template <typename T>
struct AsTheyAre {
  static constexpr bool kIsIdentity = true;
  void operator()(const T* /*from*/, T* /*to*/, std::size_t /*count*/, Owners& /*owners*/) const {}
};

template <typename From, typename To>
struct Widened {
  static constexpr bool kIsIdentity = false;
  void operator()(const From* from, To* to, std::size_t count, Owners& /*owners*/) const {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<To>(from[i]);
  }
};

struct WithoutSign {
  static constexpr bool kIsIdentity = false;
  void operator()(const std::int32_t* from, std::int64_t* to, std::size_t count,
                  Owners& /*owners*/) const {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<std::uint32_t>(from[i]);
  }
};

// Powers of ten up to 22 are doubles; above, the quotient is rounded twice.
class DecimalScale {
 public:
  explicit DecimalScale(int digits) : divisor_(std::pow(10.0L, digits)) {}

  double operator()(long double number) const { return static_cast<double>(number / divisor_); }
  // Both of these are exact doubles up to 2^53 and 10^22, so the quotient is rounded once.
  double operator()(std::int64_t number) const {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    return number >= -kExact && number <= kExact && divisor_ <= 1e22L
               ? static_cast<double>(number) / static_cast<double>(divisor_)
               : (*this)(static_cast<long double>(number));
  }

 private:
  long double divisor_;
};

template <typename From>
struct AsDecimal {
  static constexpr bool kIsIdentity = false;
  DecimalScale scale;
  void operator()(const From* from, double* to, std::size_t count, Owners& /*owners*/) const {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = scale(std::int64_t{from[i]});
  }
};

// Two's complement, the most significant byte first.
struct BytesAsDecimal {
  static constexpr bool kIsIdentity = false;
  DecimalScale scale;

  double number(std::string_view bytes) const {
    if (bytes.empty())
      return 0;
    if (bytes.size() > 16) {
      throw Damage("a decimal number has " + std::to_string(bytes.size()) +
                   " bytes; at most 16 are supported");
    }
    const bool is_negative = (static_cast<unsigned char>(bytes[0]) & 0x80) != 0;
    std::uint64_t high = is_negative ? ~std::uint64_t{0} : 0;
    std::uint64_t low = high;
    for (const char byte : bytes) {
      high = high << 8 | low >> 56;
      low = low << 8 | static_cast<unsigned char>(byte);
    }
    const auto signed_low = static_cast<std::int64_t>(low);
    const auto signed_high = static_cast<std::int64_t>(high);
    if (signed_high == (signed_low < 0 ? -1 : 0))
      return scale(signed_low);
    constexpr long double kTwoTo64 = 18446744073709551616.0L;
    return scale(static_cast<long double>(signed_high) * kTwoTo64 + static_cast<long double>(low));
  }

  void operator()(const std::string_view* from, double* to, std::size_t count,
                  Owners& /*owners*/) const {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = number(from[i]);
  }
};

// Nanoseconds of a day, then the Julian day, as microseconds since 1970.
struct Int96AsTimestamp {
  static constexpr bool kIsIdentity = false;
  void operator()(const std::string_view* from, std::int64_t* to, std::size_t count,
                  Owners& /*owners*/) const {
    for (std::size_t i = 0; i < count; ++i) {
      ByteCursor cursor(from[i]);
      const auto nanoseconds = cursor.fixed<std::int64_t>();
      const auto julian_day = cursor.fixed<std::int32_t>();
      constexpr std::int64_t kDayOf1970 = 2440588;
      constexpr std::int64_t kMicrosOfADay = 86'400'000'000;
      constexpr std::int64_t kMostDays = 100'000'000;
      const std::int64_t days = julian_day - kDayOf1970;
      if (days < -kMostDays || days > kMostDays)
        throw Damage("a timestamp is on the Julian day " + std::to_string(julian_day));
      const std::int64_t remainder = nanoseconds % 1000;
      to[i] = days * kMicrosOfADay + nanoseconds / 1000 - (remainder < 0 ? 1 : 0);
    }
  }
};

struct HalfAsFloat {
  static constexpr bool kIsIdentity = false;
  static float number(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
    const std::uint32_t exponent = half >> 10 & 31;
    const std::uint32_t fraction = half & 0x3ff;
    constexpr int kBias = 127 - 15;
    if (exponent == 31)
      return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
    if (exponent > 0)
      return std::bit_cast<float>(sign | (exponent + kBias) << 23 | fraction << 13);
    const float subnormal = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -subnormal : subnormal;
  }
  void operator()(const std::string_view* from, float* to, std::size_t count,
                  Owners& /*owners*/) const {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = number(ByteCursor(from[i]).fixed<std::uint16_t>());
  }
};

struct AsText {
  static constexpr bool kIsIdentity = true;
  void operator()(const std::string_view* from, std::string_view* /*to*/, std::size_t count,
                  Owners& /*owners*/) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (const std::optional<std::size_t> bad = first_bad_utf8(from[i])) {
        throw Damage("a text of " + std::to_string(from[i].size()) +
                     " bytes is not UTF-8 from byte " + std::to_string(*bad) + " on");
      }
    }
  }
};

struct AsUuid {
  static constexpr bool kIsIdentity = false;
  void operator()(const std::string_view* from, std::string_view* to, std::size_t count,
                  Owners& owners) const {
    constexpr std::size_t kLength = 36;
    const std::shared_ptr<char[]> room(new char[count * kLength]);
    char* out = room.get();
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = {out, kLength};
      for (std::size_t byte = 0; byte < from[i].size(); ++byte) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        if (byte == 4 || byte == 6 || byte == 8 || byte == 10)
          *out++ = '-';
        const auto value = static_cast<unsigned char>(from[i][byte]);
        *out++ = kDigits[value >> 4];
        *out++ = kDigits[value & 15];
      }
    }
    owners.push_back(room);
  }
};

template <typename Raw, typename Final, typename Conversion>
class TypedDecoder final : public ValueDecoder {
 public:
  TypedDecoder(std::size_t width, Conversion conversion)
      : width_(width), convert_(std::move(conversion)) {}

  void begin_chunk() override {
    dictionary_.clear();
    dictionary_owners_.clear();
    has_dictionary_ = false;
    values_.reset();
  }

  void set_dictionary(const SharedBytes& owner, std::string_view bytes,
                      std::size_t count) override {
    if (std::is_same_v<Raw, std::uint8_t>)
      throw Damage("truth values cannot have a dictionary");
    const std::size_t least = width_ > 0 ? width_ : kIsText ? 4 : sizeof(Raw);
    if (count > bytes.size() / least || count > kMostEntries) {
      throw Damage("its " + std::to_string(bytes.size()) + " bytes cannot be a dictionary of " +
                   std::to_string(count) + " values");
    }
    values_ = open_values<Raw>(Encoding::kPlain, bytes, width_);
    dictionary_.resize(count);
    own(dictionary_owners_, owner);
    read_values(dictionary_.data(), count, dictionary_owners_);
    has_dictionary_ = true;
  }

  void begin_page(Encoding encoding, const SharedBytes& owner, std::string_view bytes) override {
    is_indexed_ = encoding == Encoding::kPlainDictionary || encoding == Encoding::kRleDictionary;
    if (is_indexed_) {
      if (!has_dictionary_)
        throw Damage("it has indices, but there is no dictionary before it");
      values_.reset();
      page_ = nullptr;
      // A page of nulls alone may have no bytes at all.
      indices_ = bytes.empty()
                     ? HybridDecoder()
                     : HybridDecoder(bytes.substr(1), static_cast<unsigned char>(bytes[0]));
      return;
    }
    values_ = open_values<Raw>(encoding, bytes, width_);
    page_ = owner;
  }

  void make_room(ColumnValues& out, std::size_t rows) const override {
    auto* values = std::get_if<std::vector<Final>>(&out.values);
    if (values == nullptr)
      values = &out.values.template emplace<std::vector<Final>>();
    if (values->size() < rows)
      values->resize(rows);
  }

  void read(ColumnValues& out, std::size_t at, std::size_t count) override {
    if (count == 0)
      return;
    Final* const to = std::get<std::vector<Final>>(out.values).data() + at;
    if (is_indexed_) {
      read_indexed(to, count);
      for (const SharedBytes& owner : dictionary_owners_)
        own(out.owners, owner);
    } else {
      own(out.owners, page_);
      read_values(to, count, out.owners);
    }
  }

  void spread(ColumnValues& out, std::size_t at, std::size_t count,
              std::size_t rows) const override {
    Final* const values = std::get<std::vector<Final>>(out.values).data() + at;
    const std::uint8_t* const valid = out.valid.data() + at;
    std::size_t from = count;
    for (std::size_t to = rows; to > from; --to)
      values[to - 1] = valid[to - 1] != 0 ? values[--from] : Final{};
  }

 private:
  static constexpr bool kIsText = std::is_same_v<Raw, std::string_view>;
  static constexpr bool kKeepsBytes = std::is_same_v<Final, std::string_view>;

  static void own(Owners& owners, const SharedBytes& bytes) {
    if (kKeepsBytes && bytes && (owners.empty() || owners.back() != bytes))
      owners.push_back(bytes);
  }

  void read_values(Final* to, std::size_t count, Owners& owners) {
    if constexpr (Conversion::kIsIdentity) {
      values_->read(to, count, owners);
      convert_(to, to, count, owners);
    } else {
      std::array<Raw, kBlock> block;
      while (count > 0) {
        const std::size_t some = std::min(count, kBlock);
        Owners passing;
        values_->read(block.data(), some, passing);
        convert_(block.data(), to, some, owners);
        to += some;
        count -= some;
      }
    }
  }

  void read_indexed(Final* to, std::size_t count) {
    const Final* const dictionary = dictionary_.data();
    const std::size_t size = dictionary_.size();
    std::array<std::uint32_t, kBlock> block;
    while (count > 0) {
      const std::size_t some = std::min(count, kBlock);
      indices_.read(block.data(), some);
      std::uint32_t largest = 0;
      for (std::size_t i = 0; i < some; ++i)
        largest = std::max(largest, block[i]);
      if (largest >= size) {
        throw Damage("it has the index " + std::to_string(largest) + " into a dictionary of " +
                     std::to_string(size) + " values");
      }
      for (std::size_t i = 0; i < some; ++i)
        to[i] = dictionary[block[i]];
      to += some;
      count -= some;
    }
  }

  std::size_t width_;
  Conversion convert_;
  std::vector<Final> dictionary_;
  Owners dictionary_owners_;
  bool has_dictionary_ = false;
  bool is_indexed_ = false;
  HybridDecoder indices_;
  std::unique_ptr<RawValues<Raw>> values_;
  SharedBytes page_;
};

template <typename Raw, typename Final, typename Conversion>
std::unique_ptr<ValueDecoder> decoder(const Column& column, Conversion conversion) {
  return std::make_unique<TypedDecoder<Raw, Final, Conversion>>(column.width,
                                                                std::move(conversion));
}

std::unique_ptr<ValueDecoder> text_decoder(const Column& column) {
  using Text = std::string_view;
  if (column.kind == Kind::kDecimal)
    return decoder<Text, double>(column, BytesAsDecimal{DecimalScale(column.scale)});
  if (column.kind == Kind::kFloat)
    return decoder<Text, float>(column, HalfAsFloat{});
  if (column.is_uuid)
    return decoder<Text, Text>(column, AsUuid{});
  return decoder<Text, Text>(column, AsText{});
}

}  // namespace

std::unique_ptr<ValueDecoder> make_decoder(const Column& column) {
  switch (column.physical) {
    case Physical::kBoolean:
      return decoder<std::uint8_t, std::int32_t>(column, Widened<std::uint8_t, std::int32_t>{});
    case Physical::kInt32:
      if (column.kind == Kind::kDecimal)
        return decoder<std::int32_t, double>(column,
                                             AsDecimal<std::int32_t>{DecimalScale(column.scale)});
      if (column.kind == Kind::kUnsigned)
        return decoder<std::int32_t, std::int64_t>(column, WithoutSign{});
      if (column.kind == Kind::kTime)
        return decoder<std::int32_t, std::int64_t>(column, Widened<std::int32_t, std::int64_t>{});
      return decoder<std::int32_t, std::int32_t>(column, AsTheyAre<std::int32_t>{});
    case Physical::kInt64:
      if (column.kind == Kind::kDecimal)
        return decoder<std::int64_t, double>(column,
                                             AsDecimal<std::int64_t>{DecimalScale(column.scale)});
      return decoder<std::int64_t, std::int64_t>(column, AsTheyAre<std::int64_t>{});
    case Physical::kInt96: {
      Column bytes = column;
      bytes.width = 12;
      return decoder<std::string_view, std::int64_t>(bytes, Int96AsTimestamp{});
    }
    case Physical::kFloat:
      return decoder<float, float>(column, AsTheyAre<float>{});
    case Physical::kDouble:
      return decoder<double, double>(column, AsTheyAre<double>{});
    case Physical::kByteArray:
    case Physical::kFixed:
      return text_decoder(column);
  }
  throw Damage("its type is unknown");
}

}  // namespace treadle::parquet
