#pragma once

#include <cstdint>
#include <string>

namespace treadle::internal {

/// "640 MiB", for messages.
inline std::string mebibytes(std::int64_t bytes) {
  constexpr std::int64_t kMebibyte = 1 << 20;
  return std::to_string((bytes + kMebibyte / 2) / kMebibyte) + " MiB";
}

}  // namespace treadle::internal
