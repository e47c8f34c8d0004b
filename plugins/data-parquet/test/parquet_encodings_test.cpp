// Encodings and types, byte by byte. Expected values: the examples of Encodings.md and
// LogicalTypes.md of apache/parquet-format, or a loop over bits.
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_packing.h"
#include "bytes.h"
#include "delta.h"
#include "made_file.h"

namespace treadle::parquet {
namespace {

using ::testing::ElementsAre;
using namespace std::string_literals;

std::uint64_t bits_of(std::string_view bytes, std::size_t begin, int width) {
  std::uint64_t number = 0;
  for (int i = 0; i < width; ++i) {
    const std::size_t bit = begin + static_cast<std::size_t>(i);
    const std::uint64_t value = static_cast<unsigned char>(bytes[bit / 8]) >> bit % 8 & 1;
    number |= value << i;
  }
  return number;
}

std::string random_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i)
    bytes += static_cast<char>(random());
  return bytes;
}

TEST(BitPacking, UnpacksEveryWidthAsALoopOverItsBits) {
  const std::string bytes = random_bytes(700);
  for (int width = 0; width <= 64; ++width) {
    constexpr std::size_t kCount = 77;
    // No byte more than the numbers have.
    const std::string packed = bytes.substr(0, packed_size(kCount, width));
    std::vector<std::uint64_t> wide(kCount - 3);
    unpack_wide(packed, width, 3, wide.data(), wide.size());
    std::vector<std::uint32_t> narrow(kCount);
    if (width <= 32)
      unpack(packed, width, narrow.data(), kCount);

    for (std::size_t i = 0; i < kCount; ++i) {
      const std::uint64_t expected = bits_of(packed, i * static_cast<std::size_t>(width), width);
      if (i >= 3) {
        EXPECT_EQ(wide[i - 3], expected) << width << " bits, number " << i;
      }
      if (width <= 32) {
        EXPECT_EQ(narrow[i], expected) << width << " bits, number " << i;
      }
    }
  }
}

TEST(BitPacking, ReadsTheExampleOfTheFormat) {
  std::vector<std::uint32_t> numbers(8);
  unpack("\x88\xc6\xfa", 3, numbers.data(), 8);

  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(HybridDecoder, ReadsRunsAndPackedNumbersInAnyPieces) {
  // Five times 4, then eight packed numbers, then three times 1.
  const std::string bytes = "\x0a\x04\x03\x88\xc6\xfa\x06\x01"s;
  const std::vector<std::uint32_t> expected{4, 4, 4, 4, 4, 0, 1, 2, 3, 4, 5, 6, 7, 1, 1, 1};
  for (std::size_t piece = 1; piece <= expected.size(); ++piece) {
    HybridDecoder decoder(bytes, 3);
    std::vector<std::uint32_t> numbers(expected.size());
    for (std::size_t i = 0; i < numbers.size(); i += piece)
      decoder.read(numbers.data() + i, std::min(piece, numbers.size() - i));

    EXPECT_EQ(numbers, expected) << piece;
    EXPECT_THROW(decoder.read(numbers.data(), 1), Damage);
  }
}

TEST(HybridDecoder, ReadsAPackedRunThatEndsWithItsLastNumber) {
  // Sixteen numbers of 3 bits would have six bytes; five numbers are there, in two.
  const std::string bytes = "\x05\x88\x46"s;
  HybridDecoder decoder(bytes, 3);
  std::vector<std::uint32_t> numbers(5);
  decoder.read(numbers.data(), 5);

  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THROW(decoder.read(numbers.data(), 1), Damage);
}

TEST(DeltaDecoder, ReadsTheExampleOfTheFormatWithAnyPieces) {
  // 7, 5, 3, 1, 2, 3, 4, 5: blocks of 8 in one part.
  const std::string bytes = "\x08\x01\x08\x0e\x03\x02\xc0\x3f"s + "behind";
  for (std::size_t piece = 1; piece <= 8; ++piece) {
    DeltaDecoder decoder(bytes);
    std::vector<std::int64_t> numbers(8);
    EXPECT_EQ(decoder.behind(), "behind");
    for (std::size_t i = 0; i < 8; i += piece)
      decoder.read(numbers.data() + i, std::min<std::size_t>(piece, 8 - i));

    EXPECT_THAT(numbers, ElementsAre(7, 5, 3, 1, 2, 3, 4, 5)) << piece;
    EXPECT_THROW(decoder.read(numbers.data(), 1), Damage);
  }
}

TEST(DeltaDecoder, WrapsAround) {
  // The least int64 after the greatest: a difference of 1.
  const std::string bytes = "\x08\x01\x02\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x00"s;
  DeltaDecoder decoder(bytes);
  std::vector<std::int64_t> numbers(2);
  decoder.read(numbers.data(), 2);

  EXPECT_THAT(numbers, ElementsAre(std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()));
}

TEST(ParquetTypes, HaveTimestampsOf96Bits) {
  MadeFile file{.physical = Physical::kInt96, .rows = 2};
  // 2 s and 5 µs after the noon of a Julian day are those after midnight of the day's number.
  file.pages = {{little(std::int64_t{2'000'005'000}) + little(std::int32_t{2440589}) +
                     little(std::int64_t{0}) + little(std::int32_t{2440587}),
                 2}};

  EXPECT_EQ(values_or_error(file.bytes()), "86402000005000\n-86400000000000\n");
}

TEST(ParquetTypes, HaveDecimalsOfAnyBytes) {
  MadeFile file{
      .physical = Physical::kByteArray, .converted = Converted::kDecimal, .scale = 2, .rows = 4};
  const std::string long_number("\x01\0\0\0\0\0\0\0\0", 9);  // 2^64
  file.pages = {
      {little(2) + "\x01\x41"s + little(1) + "\xff"s + little(0) + little(9) + long_number, 4}};

  // printf '%016x' of 3.21, -0.01, 0 and 184467440737095516.16.
  EXPECT_EQ(values_or_error(file.bytes()),
            "4009ae147ae147ae\nbf847ae147ae147b\n0000000000000000\n43847ae147ae147b\n");
}

TEST(ParquetTypes, HaveFloatsOf16Bits) {
  MadeFile file{.physical = Physical::kFixed, .length = 2, .logical = Logical::kFloat16, .rows = 6};
  // 1, -2, 65504, the least subnormal, infinity, NaN: from the table of binary16.
  file.pages = {{"\x00\x3c\x00\xc0\xff\x7b\x01\x00\x00\x7c\x01\x7e"s, 6}};

  EXPECT_EQ(values_or_error(file.bytes()),
            "3f800000\nc0000000\n477fe000\n33800000\n7f800000\nnan\n");
}

TEST(ParquetTypes, HaveUnsignedNumbers) {
  MadeFile file{.converted = Converted::kUint32, .rows = 1};
  file.pages = {{"\xff\xff\xff\xff", 1}};

  EXPECT_EQ(values_or_error(file.bytes()), "4294967295\n");
}

TEST(ParquetPages, HaveLevelsInTheOldPacking) {
  MadeFile file{.repetition = Repetition::kOptional, .rows = 9};
  file.pages = {{"\xa0\x80"s + little(1) + little(2) + little(3), 9, Encoding::kPlain,
                 PageType::kData, std::nullopt, std::nullopt, Encoding::kBitPacked}};

  EXPECT_EQ(values_or_error(file.bytes()), "1\nnull\n2\nnull\nnull\nnull\nnull\nnull\n3\n");
}

TEST(ParquetPages, OfTextsMayDifferInTheirEncoding) {
  MadeFile file{.physical = Physical::kByteArray, .converted = Converted::kUtf8, .rows = 5};
  file.pages = {{little(1) + "a" + little(2) + "bc", 2, Encoding::kPlain, PageType::kDictionary},
                {"\x01\x03\x02"s, 2, Encoding::kPlainDictionary},
                {little(3) + "def", 1},
                {"\x01\x04\x00"s, 2, Encoding::kRleDictionary}};

  EXPECT_EQ(values_or_error(file.bytes()), "\"a\"\n\"bc\"\n\"def\"\n\"a\"\n\"a\"\n");
  EXPECT_EQ(values_or_error(file.bytes(), 1), values_or_error(file.bytes()));
}

}  // namespace
}  // namespace treadle::parquet
