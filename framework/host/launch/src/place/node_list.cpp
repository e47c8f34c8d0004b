#include "place/node_list.h"

#include <algorithm>
#include <cctype>

namespace treadle::launch {
namespace {

bool is_host_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '.' ||
         letter == '_';
}

/// "01" of "01-03,07"; empty unless it is a list of numbers and ranges.
std::string first_number(std::string_view ranges) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  std::string first;
  bool expects_number = true;
  bool is_first = true;
  for (const char letter : ranges) {
    if (is_digit(letter)) {
      expects_number = false;
      if (is_first)
        first += letter;
    } else if ((letter == '-' || letter == ',') && !expects_number) {
      expects_number = true;
      is_first = false;
    } else {
      return {};
    }
  }
  return expects_number ? std::string() : first;
}

}  // namespace

std::string first_host(std::string_view node_list) {
  std::string host;
  while (!node_list.empty() && node_list.front() != ',') {
    if (node_list.front() == '[') {
      const std::size_t end = node_list.find(']');
      const std::string number =
          end == std::string_view::npos ? "" : first_number(node_list.substr(1, end - 1));
      if (number.empty())
        return {};
      host += number;
      node_list.remove_prefix(end + 1);
    } else if (is_host_letter(node_list.front())) {
      host += node_list.front();
      node_list.remove_prefix(1);
    } else {
      return {};
    }
  }
  return host;
}

}  // namespace treadle::launch
