#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

#include "codec.h"
#include "format.h"
#include "parquet_file.h"
#include "shown_values.h"
#include "thrift.h"

namespace treadle::parquet {

/// A file of one column, made field by field, to be whatever no writer makes.
struct MadeFile {
  struct MadePage {
    std::string bytes;  ///< as stored
    std::int32_t values = 0;
    Encoding encoding = Encoding::kPlain;
    PageType type = PageType::kData;
    std::optional<std::int32_t> uncompressed_size = std::nullopt;  ///< nothing: that of `bytes`
    std::optional<std::uint32_t> crc = std::nullopt;
    Encoding level_encoding = Encoding::kRle;
  };

  Physical physical = Physical::kInt32;
  Repetition repetition = Repetition::kRequired;
  std::int32_t length = 0;
  Converted converted = Converted::kNone;
  std::int32_t scale = 0;
  Logical logical = Logical::kNone;
  Codec codec = Codec::kUncompressed;
  std::int64_t rows = 0;
  std::vector<MadePage> pages = {};
  bool is_encrypted = false;

  std::string bytes() const {
    std::string file = "PAR1";
    const std::size_t begin = file.size();
    for (const MadePage& page : pages)
      file += page_bytes(page);
    ThriftWriter footer;
    footer.integer(1, 1);
    footer.list(2, ThriftType::kStruct, 2);
    footer.begin_element();
    footer.binary(4, "root");
    footer.integer(5, 1);
    footer.end();
    footer.begin_element();
    footer.integer(1, static_cast<std::int32_t>(physical));
    if (length > 0)
      footer.integer(2, length);
    footer.integer(3, static_cast<std::int32_t>(repetition));
    footer.binary(4, "x");
    if (converted != Converted::kNone)
      footer.integer(6, static_cast<std::int32_t>(converted));
    footer.integer(7, scale);
    if (logical != Logical::kNone) {
      footer.begin(10);
      footer.begin(static_cast<int>(logical));
      footer.end();
      footer.end();
    }
    footer.end();
    footer.long_integer(3, rows);
    footer.list(4, ThriftType::kStruct, 1);
    footer.begin_element();
    footer.list(1, ThriftType::kStruct, 1);
    footer.begin_element();
    footer.begin(3);
    footer.integer(1, static_cast<std::int32_t>(physical));
    footer.integer(4, static_cast<std::int32_t>(codec));
    footer.long_integer(5, rows);
    footer.long_integer(7, static_cast<std::int64_t>(file.size() - begin));
    footer.long_integer(9, static_cast<std::int64_t>(begin));
    footer.end();
    if (is_encrypted) {
      footer.begin(8);
      footer.end();
    }
    footer.end();
    footer.long_integer(3, rows);
    footer.end();
    footer.end();
    file += footer.bytes();
    const auto size = static_cast<std::uint32_t>(footer.bytes().size());
    file.append(reinterpret_cast<const char*>(&size), sizeof size);
    return file + "PAR1";
  }

 private:
  static std::string page_bytes(const MadePage& page) {
    ThriftWriter header;
    header.integer(1, static_cast<std::int32_t>(page.type));
    header.integer(2,
                   page.uncompressed_size.value_or(static_cast<std::int32_t>(page.bytes.size())));
    header.integer(3, static_cast<std::int32_t>(page.bytes.size()));
    if (page.crc)
      header.integer(4, static_cast<std::int32_t>(*page.crc));
    header.begin(page.type == PageType::kDictionary ? 7 : page.type == PageType::kDataV2 ? 8 : 5);
    header.integer(1, page.values);
    if (page.type == PageType::kDataV2) {
      header.integer(4, static_cast<std::int32_t>(page.encoding));
      header.integer(5, 0);
      header.integer(6, 0);
    } else {
      header.integer(2, static_cast<std::int32_t>(page.encoding));
      header.integer(3, static_cast<std::int32_t>(page.level_encoding));
    }
    header.end();
    header.end();
    return header.bytes() + page.bytes;
  }
};

/// The values of a file, a line per row; the message of the error where it cannot be read.
inline std::string values_or_error(std::string_view bytes, std::size_t step = 1000) {
  try {
    return shown_values(ParquetFile(std::make_unique<MemorySource>(bytes), "x.parquet"), step);
  } catch (const DataError& error) {
    return error.what();
  }
}

template <typename T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace treadle::parquet
