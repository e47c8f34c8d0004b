#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <treadle/base/json_words.h>

namespace treadle::csv {

/// `"red", "green"`, cut after ten.
inline std::string quoted_list(const std::vector<std::string>& labels) {
  constexpr std::size_t kMostListed = 10;
  std::string text;
  for (std::size_t i = 0; i < labels.size() && i < kMostListed; ++i)
    text += (i == 0 ? "" : ", ") + quote_text(labels[i]);
  if (labels.size() > kMostListed)
    text += " and " + std::to_string(labels.size() - kMostListed) + " more";
  return text;
}

}  // namespace treadle::csv
