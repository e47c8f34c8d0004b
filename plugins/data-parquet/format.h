#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The structs of a Parquet file, as parquet.thrift of apache/parquet-format has them; only the
/// fields that are read or written here.
namespace treadle::parquet {

/// At both ends of a file.
inline constexpr std::string_view kMagic = "PAR1";

/// How the values of a column are stored.
enum class Physical : std::uint8_t {
  kBoolean = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kByteArray = 6,
  kFixed = 7
};

enum class Encoding : std::int32_t {
  kPlain = 0,
  kPlainDictionary = 2,
  kRle = 3,
  kBitPacked = 4,
  kDeltaBinaryPacked = 5,
  kDeltaLengthByteArray = 6,
  kDeltaByteArray = 7,
  kRleDictionary = 8,
  kByteStreamSplit = 9,
  kAlp = 10
};

enum class Codec : std::int32_t {
  kUncompressed = 0,
  kSnappy = 1,
  kGzip = 2,
  kLzo = 3,
  kBrotli = 4,
  kLz4 = 5,
  kZstd = 6,
  kLz4Raw = 7
};

/// As the format calls them, in capitals; "encoding 12" for one without a name.
std::string name_of(Physical physical);
std::string name_of(Encoding encoding);
std::string name_of(Codec codec);

/// ConvertedType, the older way to annotate a column; kNone stands for an absent one.
enum class Converted : std::int32_t {
  kNone = -1,
  kUtf8 = 0,
  kEnum = 4,
  kDecimal = 5,
  kDate = 6,
  kTimeMillis = 7,
  kTimeMicros = 8,
  kTimestampMillis = 9,
  kTimestampMicros = 10,
  kUint8 = 11,
  kUint16 = 12,
  kUint32 = 13,
  kUint64 = 14,
  kInt8 = 15,
  kInt16 = 16,
  kInt32 = 17,
  kInt64 = 18,
  kJson = 19,
  kBson = 20,
  kInterval = 21
};

/// The member of the union LogicalType that is set, by its number; kNone: absent.
enum class Logical : std::int32_t {
  kNone = 0,
  kString = 1,
  kMap = 2,
  kList = 3,
  kEnum = 4,
  kDecimal = 5,
  kDate = 6,
  kTime = 7,
  kTimestamp = 8,
  kInteger = 10,
  kUnknown = 11,
  kJson = 12,
  kBson = 13,
  kUuid = 14,
  kFloat16 = 15
};

enum class Repetition : std::int32_t { kRequired = 0, kOptional = 1, kRepeated = 2 };

struct SchemaElement {
  std::string name;
  std::optional<Physical> physical;  ///< absent: a group
  std::int64_t length = 0;           ///< of FIXED_LEN_BYTE_ARRAY, bytes
  Repetition repetition = Repetition::kRequired;
  std::int64_t children = 0;
  Converted converted = Converted::kNone;
  Logical logical = Logical::kNone;
  std::int64_t scale = 0;  ///< of a decimal: digits behind the point
  /// Of times: ticks per second, 1000, 1 000 000 or 1 000 000 000.
  std::int64_t ticks = 0;
  bool is_utc = false;    ///< of times
  std::int64_t bits = 0;  ///< of integers: 8, 16, 32 or 64
  bool is_signed = true;  ///< of integers
};

/// The values of one column in one row group.
struct ColumnChunk {
  Physical physical = Physical::kBoolean;
  Codec codec = Codec::kUncompressed;
  std::int64_t values = 0;
  std::int64_t compressed_size = 0;
  std::int64_t data_offset = 0;
  std::optional<std::int64_t> dictionary_offset;
  bool is_encrypted = false;
  bool is_elsewhere = false;  ///< in another file
};

struct RowGroup {
  std::vector<ColumnChunk> columns;
  std::int64_t rows = 0;
};

struct FileMetadata {
  std::vector<SchemaElement> schema;  ///< depth first, the root first
  std::vector<RowGroup> row_groups;
  std::int64_t rows = 0;
  std::string created_by;
};

enum class PageType : std::int32_t { kData = 0, kIndex = 1, kDictionary = 2, kDataV2 = 3 };

struct PageHeader {
  PageType type = PageType::kData;
  std::int64_t uncompressed_size = 0;
  std::int64_t compressed_size = 0;
  std::optional<std::uint32_t> crc;  ///< CRC-32 of the page's bytes as they are stored
  std::int64_t values = 0;           ///< with nulls
  Encoding encoding = Encoding::kPlain;
  Encoding level_encoding = Encoding::kRle;  ///< of definition levels in the first version
  std::int64_t definition_bytes = 0;         ///< of the second version, as the two below
  std::int64_t repetition_bytes = 0;
  bool is_compressed = true;
};

}  // namespace treadle::parquet
