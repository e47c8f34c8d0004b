#pragma once

#include <charconv>
#include <string>

namespace treadle::callbacks {

/// "0.1": as short as it can be read back.
inline std::string number_text(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return {text, end};
}

}  // namespace treadle::callbacks
