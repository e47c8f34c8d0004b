#pragma once

#include <cstdint>

// Written by reference.py.

namespace treadle::tokenizers {

inline constexpr std::uint64_t kSeed = 20261126;
inline constexpr int kTexts = 10000;
inline constexpr int kFitted = 600;  // the first of them
inline constexpr int kSize = 700;
inline constexpr std::uint64_t kTextsDigest = 5221817651189853279U;
inline constexpr std::uint64_t kMergesDigest = 7605343268072330286U;
inline constexpr std::uint64_t kTokensDigest =
    16127063035277696673U;  // 0xFFFFFFFF behind each text

}  // namespace treadle::tokenizers
