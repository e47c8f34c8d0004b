#include <treadle/base/text_wrap.h>

#include <algorithm>

namespace treadle {
namespace {

constexpr std::size_t kLeastBeside = 24;  // columns; less would be a column of single words
constexpr std::size_t kIndent = 4;

std::string spaces(std::size_t count) {
  return std::string(count, ' ');
}

}  // namespace

std::size_t display_columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty())
      continue;
    const std::size_t width = display_columns(word);
    const bool is_first = lines.back().empty();
    if (!is_first && used + 1 + width > columns) {
      lines.emplace_back(word);
      used = width;
      continue;
    }
    lines.back() += (is_first ? "" : " ") + std::string(word);
    used += (is_first ? 0 : 1) + width;
  }
  return lines;
}

std::string hanging_text(std::string_view left, std::size_t left_columns, std::string_view text,
                         std::size_t columns) {
  const bool is_beside = columns >= left_columns + kLeastBeside;
  const std::size_t indent = is_beside ? left_columns : kIndent;
  std::string result(left);
  if (text.empty())
    return result + "\n";
  if (is_beside) {
    result += spaces(left_columns - std::min(left_columns, display_columns(left)));
  } else {
    result += "\n" + spaces(indent);
  }
  const std::size_t room = columns > indent ? columns - indent : 1;
  bool is_first = true;
  for (const std::string& line : wrapped_lines(text, room)) {
    result += (is_first ? "" : spaces(indent)) + line + "\n";
    is_first = false;
  }
  return result;
}

}  // namespace treadle
