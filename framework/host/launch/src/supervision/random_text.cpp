#include "supervision/random_text.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace treadle::launch {

std::string random_text(std::size_t bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::vector<unsigned char> random(bytes);
  // Up to 256 bytes come at once, and no signal interrupts that.
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    throw std::system_error(errno, std::generic_category(), "the system gives no random bytes");
  std::string text;
  for (const unsigned char byte : random) {
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

}  // namespace treadle::launch
