#include "store/trial_paths.h"

#include <charconv>

namespace treadle::internal {

std::string trial_path(std::int64_t number) {
  return std::string(kTrialsGroup) + "/" + std::to_string(number);
}

std::optional<std::int64_t> trial_in_path(std::string_view fit) {
  if (!fit.starts_with(kTrialsGroup) || !fit.substr(kTrialsGroup.size()).starts_with('/'))
    return std::nullopt;
  fit.remove_prefix(kTrialsGroup.size() + 1);
  fit = fit.substr(0, fit.find('/'));
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(fit.data(), fit.data() + fit.size(), number);
  if (problem != std::errc() || end != fit.data() + fit.size())
    return std::nullopt;
  return number;
}

}  // namespace treadle::internal
