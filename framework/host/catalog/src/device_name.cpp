#include <treadle/host/catalog/device_name.h>

#include <charconv>

namespace treadle {

std::optional<DeviceName> parse_device_name(std::string_view text) {
  if (text == "auto")
    return DeviceName();
  const std::size_t colon = text.find(':');
  DeviceName name{std::string(text.substr(0, colon)), std::nullopt};
  if (name.component.empty())
    return std::nullopt;
  if (colon == std::string_view::npos)
    return name;
  const std::string_view digits = text.substr(colon + 1);
  int index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (digits.empty() || digits.front() == '-' || error != std::errc() ||
      end != digits.data() + digits.size())
    return std::nullopt;
  name.index = index;
  return name;
}

}  // namespace treadle
