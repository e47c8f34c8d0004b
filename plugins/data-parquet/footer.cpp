#include "footer.h"

#include <array>
#include <string>

#include "thrift.h"

namespace treadle::parquet {
namespace {

// Negative: absent.
constexpr std::int64_t kAbsent = -1;

std::int64_t count_of(ThriftReader& reader, ThriftField field, const char* what) {
  const std::int64_t value = reader.integer(field);
  if (value < 0)
    throw Damage(std::string(what) + " is " + std::to_string(value));
  return value;
}

std::int64_t needed(std::int64_t value, const char* what) {
  if (value == kAbsent)
    throw Damage(std::string("there is no ") + what);
  return value;
}

Physical physical_of(std::int64_t number) {
  if (number < 0 || number > static_cast<int>(Physical::kFixed))
    throw Damage("a column has the unknown type " + std::to_string(number));
  return static_cast<Physical>(number);
}

// A number outside an enum's range stays one that no name fits.
template <typename Enum>
Enum enum_of(std::int64_t number) {
  return static_cast<Enum>(number < 0 || number > 1000 ? 1000 : number);
}

std::int64_t read_ticks(ThriftReader& reader) {
  std::int64_t ticks = 0;
  reader.each_field([&](ThriftField field) {
    constexpr std::array<std::int64_t, 4> kTicks{0, 1'000, 1'000'000, 1'000'000'000};
    ticks = field.id >= 1 && field.id <= 3 ? kTicks[static_cast<std::size_t>(field.id)] : 0;
    return false;
  });
  return ticks;
}

void read_time(ThriftReader& reader, SchemaElement& element) {
  reader.each_field([&](ThriftField field) {
    if (field.id == 1) {
      element.is_utc = reader.boolean(field);
    } else if (field.id == 2) {
      reader.expect_struct(field);
      element.ticks = read_ticks(reader);
    } else {
      return false;
    }
    return true;
  });
}

void read_logical_type(ThriftReader& reader, SchemaElement& element) {
  reader.each_field([&](ThriftField field) {
    element.logical = enum_of<Logical>(field.id);
    if (field.type != ThriftType::kStruct)
      return false;
    switch (element.logical) {
      case Logical::kDecimal:
        reader.each_field([&](ThriftField inner) {
          if (inner.id != 1)
            return false;
          element.scale = reader.integer(inner);
          return true;
        });
        return true;
      case Logical::kTime:
      case Logical::kTimestamp:
        read_time(reader, element);
        return true;
      case Logical::kInteger:
        reader.each_field([&](ThriftField inner) {
          if (inner.id == 1)
            element.bits = reader.integer(inner);
          else if (inner.id == 2)
            element.is_signed = reader.boolean(inner);
          else
            return false;
          return true;
        });
        return true;
      default:
        return false;
    }
  });
}

SchemaElement read_element(ThriftReader& reader) {
  SchemaElement element;
  bool has_name = false;
  reader.each_field([&](ThriftField field) {
    switch (field.id) {
      case 1:
        element.physical = physical_of(reader.integer(field));
        return true;
      case 2:
        element.length = reader.integer(field);
        return true;
      case 3:
        element.repetition = enum_of<Repetition>(reader.integer(field));
        return true;
      case 4:
        element.name = reader.binary(field);
        has_name = true;
        return true;
      case 5:
        element.children = count_of(reader, field, "the number of children of a group");
        return true;
      case 6:
        element.converted = enum_of<Converted>(reader.integer(field));
        return true;
      case 7:
        element.scale = reader.integer(field);
        return true;
      case 10:
        reader.expect_struct(field);
        read_logical_type(reader, element);
        return true;
      default:
        return false;
    }
  });
  if (!has_name)
    throw Damage("a column has no name");
  return element;
}

void read_chunk_metadata(ThriftReader& reader, ColumnChunk& chunk) {
  std::int64_t physical = kAbsent;
  std::int64_t codec = kAbsent;
  chunk.values = chunk.compressed_size = chunk.data_offset = kAbsent;
  reader.each_field([&](ThriftField field) {
    switch (field.id) {
      case 1:
        physical = count_of(reader, field, "a column's type");
        return true;
      case 4:
        codec = count_of(reader, field, "a column's codec");
        return true;
      case 5:
        chunk.values = count_of(reader, field, "a column's number of values");
        return true;
      case 7:
        chunk.compressed_size = count_of(reader, field, "a column's size");
        return true;
      case 9:
        chunk.data_offset = count_of(reader, field, "a column's offset");
        return true;
      case 11:
        chunk.dictionary_offset = count_of(reader, field, "the offset of a dictionary");
        return true;
      default:
        return false;
    }
  });
  chunk.physical = physical_of(needed(physical, "type of a column"));
  chunk.codec = enum_of<Codec>(needed(codec, "codec of a column"));
  needed(chunk.values, "number of a column's values");
  needed(chunk.compressed_size, "size of a column");
  needed(chunk.data_offset, "offset of a column");
}

ColumnChunk read_chunk(ThriftReader& reader) {
  ColumnChunk chunk;
  bool has_metadata = false;
  reader.each_field([&](ThriftField field) {
    switch (field.id) {
      case 1:
        chunk.is_elsewhere = !reader.binary(field).empty();
        return true;
      case 3:
        reader.expect_struct(field);
        read_chunk_metadata(reader, chunk);
        has_metadata = true;
        return true;
      case 8:
      case 9:
        chunk.is_encrypted = true;
        return false;
      default:
        return false;
    }
  });
  if (!has_metadata && !chunk.is_encrypted)
    throw Damage("a column has no metadata");
  return chunk;
}

RowGroup read_row_group(ThriftReader& reader) {
  RowGroup group;
  group.rows = kAbsent;
  reader.each_field([&](ThriftField field) {
    if (field.id == 1) {
      reader.each_element(field, [&](ThriftField element) {
        reader.expect_struct(element);
        group.columns.push_back(read_chunk(reader));
      });
      return true;
    }
    if (field.id == 3) {
      group.rows = count_of(reader, field, "the number of rows of a row group");
      return true;
    }
    return false;
  });
  needed(group.rows, "number of rows of a row group");
  return group;
}

void read_data_page(ThriftReader& reader, PageHeader& page) {
  reader.each_field([&](ThriftField field) {
    switch (field.id) {
      case 1:
        page.values = count_of(reader, field, "the number of values of a page");
        return true;
      case 2:
        page.encoding = enum_of<Encoding>(reader.integer(field));
        return true;
      case 3:
        page.level_encoding = enum_of<Encoding>(reader.integer(field));
        return true;
      default:
        return false;
    }
  });
}

void read_dictionary_page(ThriftReader& reader, PageHeader& page) {
  reader.each_field([&](ThriftField field) {
    if (field.id == 1) {
      page.values = count_of(reader, field, "the number of values of a dictionary");
    } else if (field.id == 2) {
      page.encoding = enum_of<Encoding>(reader.integer(field));
    } else {
      return false;
    }
    return true;
  });
}

void read_data_page_v2(ThriftReader& reader, PageHeader& page) {
  reader.each_field([&](ThriftField field) {
    switch (field.id) {
      case 1:
        page.values = count_of(reader, field, "the number of values of a page");
        return true;
      case 4:
        page.encoding = enum_of<Encoding>(reader.integer(field));
        return true;
      case 5:
        page.definition_bytes = count_of(reader, field, "the size of a page's levels");
        return true;
      case 6:
        page.repetition_bytes = count_of(reader, field, "the size of a page's levels");
        return true;
      case 7:
        page.is_compressed = reader.boolean(field);
        return true;
      default:
        return false;
    }
  });
}

}  // namespace

FileMetadata read_footer(std::string_view bytes) {
  FileMetadata file;
  file.rows = kAbsent;
  ThriftReader reader(bytes);
  reader.each_field([&](ThriftField field) {
    switch (field.id) {
      case 2:
        reader.each_element(field, [&](ThriftField element) {
          reader.expect_struct(element);
          file.schema.push_back(read_element(reader));
        });
        return true;
      case 3:
        file.rows = count_of(reader, field, "the number of rows");
        return true;
      case 4:
        reader.each_element(field, [&](ThriftField element) {
          reader.expect_struct(element);
          file.row_groups.push_back(read_row_group(reader));
        });
        return true;
      case 6:
        file.created_by = reader.binary(field);
        return true;
      default:
        return false;
    }
  });
  needed(file.rows, "number of rows");
  if (file.schema.empty())
    throw Damage("there is no schema");
  return file;
}

PageHeader read_page_header(std::string_view bytes, std::size_t& size) {
  PageHeader page;
  std::int64_t type = kAbsent;
  std::int64_t header = kAbsent;
  page.uncompressed_size = page.compressed_size = kAbsent;
  ThriftReader reader(bytes);
  reader.each_field([&](ThriftField field) {
    switch (field.id) {
      case 1:
        type = count_of(reader, field, "the type of a page");
        return true;
      case 2:
        page.uncompressed_size = count_of(reader, field, "the size of a page");
        return true;
      case 3:
        page.compressed_size = count_of(reader, field, "the size of a page");
        return true;
      case 4:
        page.crc = static_cast<std::uint32_t>(reader.integer(field));
        return true;
      case 5:
        reader.expect_struct(field);
        read_data_page(reader, page);
        header = static_cast<int>(PageType::kData);
        return true;
      case 7:
        reader.expect_struct(field);
        read_dictionary_page(reader, page);
        header = static_cast<int>(PageType::kDictionary);
        return true;
      case 8:
        reader.expect_struct(field);
        read_data_page_v2(reader, page);
        header = static_cast<int>(PageType::kDataV2);
        return true;
      default:
        return false;
    }
  });
  needed(page.uncompressed_size, "uncompressed size of the page");
  needed(page.compressed_size, "compressed size of the page");
  page.type = enum_of<PageType>(needed(type, "type of the page"));
  if (page.type != PageType::kIndex && type <= 3 && header != type)
    throw Damage("the page has no header of its type");
  size = static_cast<std::size_t>(reader.position() - bytes.data());
  return page;
}

std::string name_of(Physical physical) {
  constexpr std::array<const char*, 8> kNames{
      "BOOLEAN", "INT32",  "INT64",      "INT96",
      "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
  return kNames[static_cast<std::size_t>(physical)];
}

std::string name_of(Encoding encoding) {
  constexpr std::array<const char*, 11> kNames{"PLAIN",
                                               "",
                                               "PLAIN_DICTIONARY",
                                               "RLE",
                                               "BIT_PACKED",
                                               "DELTA_BINARY_PACKED",
                                               "DELTA_LENGTH_BYTE_ARRAY",
                                               "DELTA_BYTE_ARRAY",
                                               "RLE_DICTIONARY",
                                               "BYTE_STREAM_SPLIT",
                                               "ALP"};
  const auto number = static_cast<std::size_t>(encoding);
  return number < kNames.size() && kNames[number][0] != '\0' ? kNames[number]
                                                             : "encoding " + std::to_string(number);
}

std::string name_of(Codec codec) {
  constexpr std::array<const char*, 8> kNames{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                              "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
  const auto number = static_cast<std::size_t>(codec);
  return number < kNames.size() ? kNames[number] : "codec " + std::to_string(number);
}

}  // namespace treadle::parquet
