#include "split_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace treadle::validation {

std::int64_t Size::of(std::int64_t all) const {
  if (share_ == 0)
    return count_;
  return std::max<std::int64_t>(1, std::llround(share_ * static_cast<double>(all)));
}

std::string Size::text() const {
  if (share_ == 0)
    return std::to_string(count_);
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g%%", 100 * share_);
  return text;
}

std::optional<Size> find_size(const Config& config, std::string_view key) {
  if (!config.has(key))
    return std::nullopt;
  if (config.json().at(std::string(key)).is_number_integer())
    return Size(config.get<std::int64_t>(key));
  return Size(config.get<double>(key));
}

}  // namespace treadle::validation
