#include <treadle/host/catalog/fingerprint.h>

#include <algorithm>

#include "targets.h"

namespace treadle::fuzz {
namespace {

// A word or two for each fact and each library.
constexpr std::size_t kLongestMismatch = 40000;

const HostBuild& host() {
  static const HostBuild build{
      "sdk_abi=1.2\nlibtorch=1.13.0\nlibtorch_flavour=CPU\nstandard_library=libstdc++\n"
      "string_abi=new\ndebug_containers=off\nc_library=glibc\nrtti=on\nexceptions=on\n"
      "sanitizers=none\ntbb=12080\nnlohmann_json=3.11.2\ntype_sizes=Tensor:8/8 string:32/8 \n",
      {"libtorch_cpu.so.1.13", "libc10.so.1.13", "libstdc++.so.6", "libm.so.6"}};
  return build;
}

/// Whether the first line that names the SDK's ABI says 1.0, 1.1 or 1.2.
bool fits_the_abi(std::string_view text) {
  constexpr std::string_view kKey = "sdk_abi=";
  while (!text.empty() && !text.starts_with(kKey))
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  if (text.empty())
    return false;
  text = text.substr(kKey.size(), text.find('\n') - kKey.size());
  const auto number = [](std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  };
  const std::size_t point = text.find('.');
  if (point == 0 || point == std::string_view::npos || point + 1 == text.size())
    return false;
  const std::string_view minor = number(text.substr(point + 1));
  return number(text.substr(0, point)) == "1" && (minor == "0" || minor == "1" || minor == "2");
}

}  // namespace

void fingerprint(std::string_view bytes) {
  std::string_view rest = bytes;
  const std::string_view text = take_part(rest);
  std::vector<std::string> needed;
  while (!rest.empty() && needed.size() < 256)
    needed.emplace_back(take_part(rest));

  const std::string sentence = explain_mismatch(text, needed, host());

  if (!sentence.empty())
    promise_readable(sentence, kLongestMismatch);
  promise(sentence.find('\n') == std::string::npos, "a mismatch is one line");
  if (sentence.empty())
    promise(fits_the_abi(text), "no plugin of a newer SDK, or of none, is loaded");
  promise(sentence == explain_mismatch(text, needed, host()),
          "a mismatch is the same when asked again");
}

}  // namespace treadle::fuzz
