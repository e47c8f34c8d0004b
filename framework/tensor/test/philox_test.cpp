#include <treadle/tensor/philox.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace treadle {
namespace {

using Words = std::array<std::uint32_t, 4>;

Words block_of(Philox philox, std::uint64_t block) {
  Words words{};
  philox.fill(block, words);
  return words;
}

// The known answers of Random123 (tests/kat_vectors, "philox4x32 10").
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(block_of({0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  EXPECT_EQ(block_of({kOnes, kOnes}, kOnes),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter and key are digits of pi.
  EXPECT_EQ(block_of({0x299f31d0'a4093822, 0x03707344'13198a2e}, 0x85a308d3'243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsAnyPartOfASequenceByItself) {
  const Philox philox{7, 3};
  constexpr std::size_t kBlocks = 75;                              // of vectors of any length
  constexpr std::uint64_t kFirst = (std::uint64_t{1} << 32) - 20;  // and across its low word
  std::vector<std::uint32_t> whole(4 * kBlocks);
  philox.fill(kFirst, whole);
  for (std::size_t begin = 0; begin < kBlocks; begin += 7) {
    for (std::size_t count = 1; begin + count <= kBlocks; count += 5) {
      std::vector<std::uint32_t> part(4 * count);
      philox.fill(kFirst + begin, part);
      EXPECT_THAT(part,
                  ::testing::ElementsAreArray(std::span(whole).subspan(4 * begin, 4 * count)));
    }
  }
}

}  // namespace
}  // namespace treadle
