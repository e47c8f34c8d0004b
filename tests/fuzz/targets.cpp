#include "targets.h"

#include <algorithm>
#include <array>

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

std::span<const Target> targets() {
  static constexpr std::array kTargets{
      Target{"library-notes", library_notes},
      Target{"document", document},
      Target{"schema", schema},
      Target{"manifest", manifest},
      Target{"fingerprint", fingerprint},
      Target{"plugin-cache", plugin_cache},
      Target{"duration", duration},
  };
  return kTargets;
}

std::string_view take_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(kSeparator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

}  // namespace treadle::fuzz
