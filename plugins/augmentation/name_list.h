#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <treadle/base/json_words.h>

namespace treadle::augmentation {

/// `a, b, c`, cut after twenty.
inline std::string name_list(const std::vector<std::string>& names) {
  constexpr std::size_t kMostListed = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostListed; ++i)
    text += (i == 0 ? "" : ", ") + plain_text(names[i]);
  if (names.size() > kMostListed)
    text += " and " + std::to_string(names.size() - kMostListed) + " more";
  return text.empty() ? "none" : text;
}

}  // namespace treadle::augmentation
