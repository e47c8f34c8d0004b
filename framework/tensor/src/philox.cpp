#include <treadle/tensor/philox.h>

// Highway compiles this file once per instruction set: what stands between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE each time, the rest once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "philox.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace treadle::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Several blocks at once: a lane of 64 bits has one word of one block, so that the product of two
/// words has room.
void fill_words(Philox philox, std::uint64_t block, std::uint32_t* words, std::size_t blocks) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  constexpr int kRounds = 10;
  constexpr std::size_t kAtOnce = 8;
  const hn::CappedTag<std::uint64_t, kAtOnce> wide;
  const hn::Rebind<std::uint32_t, decltype(wide)> narrow;
  const auto low = hn::Set(wide, kLow);
  const auto product = [&](auto words_of_blocks, std::uint32_t factor) {
#if HWY_TARGET == HWY_SCALAR  // one lane: it has no halves
    return hn::Set(wide, hn::GetLane(words_of_blocks) * factor);
#else
    const hn::Repartition<std::uint32_t, decltype(wide)> halves;
    return hn::MulEven(hn::BitCast(halves, words_of_blocks), hn::Set(halves, factor));
#endif
  };
  const std::size_t lanes = hn::Lanes(wide);
  HWY_ALIGN std::uint32_t drawn[4 * kAtOnce];
  for (std::size_t done = 0; done < blocks; done += lanes) {
    const auto counter = hn::Add(hn::Set(wide, block + done), hn::Iota(wide, 0));
    auto c0 = hn::And(counter, low);
    auto c1 = hn::ShiftRight<32>(counter);
    auto c2 = hn::Set(wide, philox.stream & kLow);
    auto c3 = hn::Set(wide, philox.stream >> 32);
    auto k0 = static_cast<std::uint32_t>(philox.seed);
    auto k1 = static_cast<std::uint32_t>(philox.seed >> 32);
    for (int round = 0; round < kRounds; ++round) {
      const auto p0 = product(c0, 0xD2511F53);
      const auto p1 = product(c2, 0xCD9E8D57);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(wide, k0));
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(wide, k1));
      c1 = hn::And(p1, low);
      c3 = hn::And(p0, low);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    const bool fits = done + lanes <= blocks;
    std::uint32_t* const target = fits ? words + 4 * done : drawn;
    hn::StoreInterleaved4(hn::TruncateTo(narrow, c0), hn::TruncateTo(narrow, c1),
                          hn::TruncateTo(narrow, c2), hn::TruncateTo(narrow, c3), narrow, target);
    for (std::size_t i = 0; !fits && i < 4 * (blocks - done); ++i)
      words[4 * done + i] = drawn[i];
  }
}

}  // namespace
}  // namespace treadle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle {
namespace {

HWY_EXPORT(fill_words);

}  // namespace

void Philox::fill(std::uint64_t block, std::span<std::uint32_t> words) const {
  HWY_DYNAMIC_DISPATCH(fill_words)(*this, block, words.data(), words.size() / 4);
}

}  // namespace treadle
#endif
