#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <zstd.h>

#include <treadle/base/error.h>

#include "bytes.h"
#include "made_file.h"
#include "page_stream.h"

namespace treadle::parquet {
namespace {

using namespace std::string_literals;

std::string numbers(std::int32_t count) {
  std::string bytes;
  for (std::int32_t i = 0; i < count; ++i)
    bytes += little(i);
  return bytes;
}

TEST(ParquetErrors, NameFileColumnRowGroupAndPage) {
  MadeFile file{.rows = 4};
  file.pages = {{numbers(2), 2}, {numbers(2), 2, Encoding::kDeltaByteArray}};

  EXPECT_EQ(values_or_error(file.bytes()),
            "x.parquet: column \"x\", row group 0, page 1: it has the encoding DELTA_BYTE_ARRAY, "
            "which integers cannot have");
}

TEST(ParquetErrors, NameWhatIsNotSupported) {
  MadeFile alp{.physical = Physical::kDouble, .rows = 1};
  alp.pages = {{std::string(8, '\0'), 1, Encoding::kAlp}};
  EXPECT_EQ(values_or_error(alp.bytes()),
            "x.parquet: column \"x\", row group 0, page 0: it has the encoding ALP, which is not "
            "supported; write the file with PLAIN or dictionaries");

  for (const auto& [codec, name] : {std::pair(Codec::kBrotli, "BROTLI"),
                                    {Codec::kLzo, "LZO"},
                                    {Codec::kLz4, "LZ4"},
                                    {static_cast<Codec>(77), "codec 77"}}) {
    MadeFile file{.codec = codec, .rows = 1};
    file.pages = {{numbers(1), 1}};
    EXPECT_EQ(values_or_error(file.bytes()),
              "x.parquet: column \"x\", row group 0: it is compressed with "s + name +
                  ", which is not supported; write the file with ZSTD, SNAPPY or GZIP");
  }

  MadeFile encrypted{.rows = 1, .is_encrypted = true};
  EXPECT_EQ(values_or_error(encrypted.bytes()),
            "x.parquet: column \"x\", row group 0: it is encrypted, which is not supported");
  EXPECT_EQ(values_or_error("PARE" + std::string(20, ' ') + "PARE"),
            "x.parquet: the file is encrypted, which is not supported");
}

TEST(ParquetErrors, TellOtherFilesAndCutOnesApart) {
  EXPECT_EQ(values_or_error(""), "x.parquet: the file is empty");
  EXPECT_EQ(values_or_error("a,b\n1,2\n"),
            "x.parquet: this is no Parquet file: it does not begin with \"PAR1\"");
  EXPECT_EQ(values_or_error("PAR1 and no more of it"),
            "x.parquet: the file is cut: a Parquet file ends with \"PAR1\"");
  EXPECT_EQ(values_or_error("PAR1\xff\xff\xff\x7fPAR1"),
            "x.parquet: the footer has 2147483647 bytes, and the file 12");
}

TEST(ParquetErrors, ComeFromAChecksumThatDiffers) {
  MadeFile file{.rows = 1};
  const std::string bytes = numbers(1);
  file.pages = {{bytes, 1, Encoding::kPlain, PageType::kData, std::nullopt, crc_of(bytes)}};
  EXPECT_EQ(values_or_error(file.bytes()), "0\n");

  file.pages[0].crc = crc_of(bytes) ^ 1;
  EXPECT_EQ(values_or_error(file.bytes()),
            "x.parquet: column \"x\", row group 0, page 0: it is damaged: its checksum differs");
}

// Decompression bombs are refused before memory is allocated.
TEST(ParquetErrors, ComeFromPagesThatWouldExplode) {
  std::string zeros(1 << 20, '\0');
  std::string packed(ZSTD_compressBound(zeros.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));

  MadeFile file{.codec = Codec::kZstd, .rows = 50'000'000};
  file.pages = {{packed, 50'000'000, Encoding::kPlain, PageType::kData, 199'000'000}};
  const std::string more_than_zstd_can = values_or_error(file.bytes());
  EXPECT_EQ(
      more_than_zstd_can,
      "x.parquet: column \"x\", row group 0, page 0: it should have 199000000 bytes, but ZSTD "
      "makes it 1048576");

  file.pages[0].uncompressed_size = 2'000'000'000;
  EXPECT_EQ(
      values_or_error(file.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: it has 2000000000 bytes; at most 200000000 "
      "are supported");

  file.codec = Codec::kLz4Raw;
  file.pages[0] = {"0123456789", 50'000'000, Encoding::kPlain, PageType::kData, 200'000};
  EXPECT_EQ(
      values_or_error(file.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: it should have 200000 bytes, more than LZ4 "
      "makes of 10");
  file.pages[0] = {
      "\x14"
      "a\x02\x00"s,
      2, Encoding::kPlain, PageType::kData, 8};
  EXPECT_EQ(
      values_or_error(file.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: it is damaged: LZ4 copies from before its "
      "beginning");

  file.codec = Codec::kGzip;
  file.pages[0] = {"0123456789", 50'000'000, Encoding::kPlain, PageType::kData, 200'000};
  EXPECT_EQ(values_or_error(file.bytes()),
            "x.parquet: column \"x\", row group 0, page 0: it should have 200000 bytes, more than "
            "GZIP makes of 10");

  file.codec = Codec::kSnappy;
  file.pages[0] = {"\x80\x80\x80\x20junk", 50'000'000, Encoding::kPlain, PageType::kData, 1 << 26};
  EXPECT_EQ(
      values_or_error(file.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: it is damaged: SNAPPY compresses less than "
      "that");
}

TEST(ParquetErrors, ComeFromPagesOfManyColumnsThatWouldExplodeTogether) {
  PageMemory memory(10);
  for (int column = 0; column < 5; ++column)
    memory.exchange(0, 200'000'000);

  EXPECT_THROW(memory.exchange(0, 200'000'000), Damage);
  EXPECT_NO_THROW(memory.exchange(200'000'000, 200'000'000));
}

TEST(ParquetErrors, ComeFromCountsThatDoNotFit) {
  MadeFile file{.rows = 3};
  file.pages = {{numbers(4), 4}};
  EXPECT_EQ(
      values_or_error(file.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: it has 4 values, but only 3 rows are left "
      "in the row group");
  file.pages = {{numbers(2), 2}};
  EXPECT_EQ(values_or_error(file.bytes()),
            "x.parquet: column \"x\", row group 0: its pages end before its row group; values that "
            "are missing: 1");
  file.pages = {{numbers(2), 3}};
  EXPECT_EQ(
      values_or_error(file.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: it has fewer values than its levels: 1 more "
      "are needed");

  MadeFile texts{.physical = Physical::kByteArray, .converted = Converted::kUtf8, .rows = 1};
  texts.pages = {{"\x01\x02\x01"s, 1, Encoding::kRleDictionary}};
  EXPECT_EQ(
      values_or_error(texts.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: it has indices, but there is no dictionary "
      "before it");
  texts.pages.insert(texts.pages.begin(),
                     {little(1) + "a", 1, Encoding::kPlain, PageType::kDictionary});
  EXPECT_EQ(
      values_or_error(texts.bytes()),
      "x.parquet: column \"x\", row group 0, page 1: it has the index 1 into a dictionary of 1 "
      "values");
  texts.pages = {{little(2) + "\xff\xfe", 1}};
  EXPECT_EQ(
      values_or_error(texts.bytes()),
      "x.parquet: column \"x\", row group 0, page 0: a text of 2 bytes is not UTF-8 from byte 0 "
      "on");
}

TEST(ParquetErrors, RefuseColumnsOnlyWhereTheyAreRead) {
  MadeFile file{.physical = Physical::kInt32, .repetition = Repetition::kRepeated, .rows = 1};
  const std::string bytes = file.bytes();
  const ParquetFile opened(std::make_unique<MemorySource>(bytes), "x.parquet");

  EXPECT_EQ(opened.columns()[0].refusal, "it has several values in a row");
  try {
    RowsReader(opened, {0});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "x.parquet: column \"x\" cannot be read: it has several values in a row");
  }
}

}  // namespace
}  // namespace treadle::parquet
