#include "targets.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace treadle::fuzz {

void promise(bool holds, const std::string& what) {
  if (!holds)
    throw BrokenPromise(what);
}

void promise_readable(std::string_view message, std::size_t longest) {
  promise(!message.empty(), "a message is not empty");
  promise(message.size() <= longest,
          "a message is short, this one has " + std::to_string(message.size()) + " bytes");
  const bool has_control = std::any_of(message.begin(), message.end(), [](unsigned char c) {
    return (c < 0x20 && c != '\n') || c == 0x7f;
  });
  promise(!has_control, "a message does nothing to a terminal");
  try {
    static_cast<void>(nlohmann::json(message).dump());
  } catch (const nlohmann::json::exception&) {
    promise(false, "a message is UTF-8");
  }
}

std::string_view take_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(kSeparator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

}  // namespace treadle::fuzz
