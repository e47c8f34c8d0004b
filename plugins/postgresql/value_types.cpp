#include "value_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace treadle::postgresql {
namespace {

struct KnownType {
  std::uint32_t oid;
  Reading reading;
  const char* cast;  ///< null: read as it is
};

// OIDs of built-in types never change: src/include/catalog/pg_type.dat.
constexpr std::array kKnown{
    KnownType{16, Reading::kBoolean, nullptr},     KnownType{20, Reading::kInteger, nullptr},
    KnownType{21, Reading::kInteger, nullptr},     KnownType{23, Reading::kInteger, nullptr},
    KnownType{26, Reading::kInteger, "int8"},  // oid
    KnownType{700, Reading::kFloat, nullptr},      KnownType{701, Reading::kDouble, nullptr},
    KnownType{1700, Reading::kDouble, "float8"},  // numeric
    KnownType{1082, Reading::kDate, nullptr},      KnownType{1114, Reading::kTimestamp, nullptr},
    KnownType{1184, Reading::kTimestamp, nullptr},  // with time zone
    KnownType{1083, Reading::kText, "text"},        // time
    KnownType{114, Reading::kText, "text"},         // json
    KnownType{3802, Reading::kText, "text"},        // jsonb
    KnownType{2950, Reading::kText, "text"},        // uuid
    KnownType{18, Reading::kText, "text"}};         // "char"

constexpr std::int64_t kSecondsAt2000 = 946'684'800;  // since 1970
constexpr std::int64_t kMicroseconds = 1'000'000;

const KnownType* known(std::uint32_t type) {
  const auto found = std::find_if(kKnown.begin(), kKnown.end(),
                                  [&](const KnownType& one) { return one.oid == type; });
  return found == kKnown.end() ? nullptr : &*found;
}

}  // namespace

Reading reading_of(std::uint32_t type, char category) {
  if (const KnownType* const one = known(type))
    return one->reading;
  // Strings, enumerations, addresses of networks.
  return category == 'S' || category == 'E' || category == 'I' ? Reading::kText : Reading::kRefused;
}

std::string cast(Reading reading, std::uint32_t type, const std::string& name) {
  if (const KnownType* const one = known(type))
    return one->cast == nullptr ? name : name + "::" + one->cast;
  return reading == Reading::kText || reading == Reading::kRefused ? name + "::text" : name;
}

std::int64_t integer_of(std::string_view bytes) {
  std::uint64_t value =
      bytes.empty() || (static_cast<unsigned char>(bytes[0]) & 0x80U) == 0 ? 0 : ~std::uint64_t{0};
  for (const char byte : bytes)
    value = value << 8U | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

double float_of(std::string_view bytes) {
  const std::int64_t bits = integer_of(bytes);
  if (bytes.size() == sizeof(float))
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

std::optional<table::Timestamp> date_of(std::string_view bytes) {
  const std::int64_t days = integer_of(bytes);
  if (days == std::numeric_limits<std::int32_t>::max() ||
      days == std::numeric_limits<std::int32_t>::min())
    return std::nullopt;
  return table::Timestamp{kSecondsAt2000 + days * 86'400, 0, 0};
}

std::optional<table::Timestamp> timestamp_of(std::string_view bytes) {
  const std::int64_t count = integer_of(bytes);
  if (count == std::numeric_limits<std::int64_t>::max() ||
      count == std::numeric_limits<std::int64_t>::min())
    return std::nullopt;
  std::int64_t seconds = count / kMicroseconds;
  std::int64_t rest = count % kMicroseconds;
  if (rest < 0) {
    rest += kMicroseconds;
    --seconds;
  }
  return table::Timestamp{kSecondsAt2000 + seconds, static_cast<std::int32_t>(rest * 1000), 0};
}

}  // namespace treadle::postgresql
