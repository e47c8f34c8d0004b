#include <treadle/base/utf8.h>

#include <algorithm>

namespace treadle {
namespace {

/// What a first byte promises.
struct Lead {
  std::size_t length = 0;  ///< 0: begins no character
  unsigned low = 0x80;     ///< of the second byte
  unsigned high = 0xBF;
};

Lead lead_of(unsigned char first) {
  if (first < 0x80)
    return {1};
  if (first < 0xC2 || first > 0xF4)
    return {};
  return {first < 0xE0U   ? std::size_t{2}
          : first < 0xF0U ? std::size_t{3}
                          : std::size_t{4},
          first == 0xE0   ? 0xA0U
          : first == 0xF0 ? 0x90U
                          : 0x80U,
          first == 0xED   ? 0x9FU
          : first == 0xF4 ? 0x8FU
                          : 0xBFU};
}

/// How many of the bytes that are there fit the character that the first one begins.
std::size_t fitting(std::string_view text, const Lead& lead) {
  const std::size_t available = std::min(text.size(), lead.length);
  for (std::size_t i = 1; i < available; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < (i == 1 ? lead.low : 0x80U) || byte > (i == 1 ? lead.high : 0xBFU))
      return i;
  }
  return available;
}

}  // namespace

std::size_t utf8_character(std::string_view text) {
  if (text.empty())
    return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text.front()));
  return fitting(text, lead) == lead.length ? lead.length : 0;
}

std::optional<std::size_t> first_bad_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_character(text.substr(i));
    if (length == 0)
      return i;
    i += length;
  }
  return std::nullopt;
}

std::size_t whole_characters(std::string_view text) {
  const std::size_t most = std::min<std::size_t>(text.size(), 3);
  for (std::size_t back = 1; back <= most; ++back) {
    const std::string_view end = text.substr(text.size() - back);
    const Lead lead = lead_of(static_cast<unsigned char>(end.front()));
    if (lead.length > back && fitting(end, lead) == back)
      return text.size() - back;
  }
  return text.size();
}

}  // namespace treadle
