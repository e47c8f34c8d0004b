#include "terminal/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include <treadle/base/quoted_text.h>
#include <treadle/base/text_wrap.h>

#include "terminal/result_text.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kWidestCell = 32;
constexpr std::string_view kBetween = "  ";
constexpr std::size_t kLongestWritten = 10;  // digits of a number that somebody has typed

std::vector<std::size_t> widths_of(const Cells& head, const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < head.size(); ++i) {
    widths.push_back(columns_of(head[i]));
    for (const Cells& row : rows)
      widths.back() = std::max(widths.back(), columns_of(row[i]));
  }
  return widths;
}

}  // namespace

std::size_t table_width(const Cells& head, const std::vector<Cells>& rows) {
  const std::vector<std::size_t> widths = widths_of(head, rows);
  return std::accumulate(widths.begin(), widths.end(), kBetween.size() * (widths.size() - 1));
}

std::string table_text(const Cells& head, const std::vector<Cells>& rows, std::size_t left_columns,
                       const Terminal& terminal) {
  const std::vector<std::size_t> widths = widths_of(head, rows);
  std::string text;
  for (std::size_t begin = 1; begin < head.size();) {
    std::size_t total = widths[0] + kBetween.size() + widths[begin];
    std::size_t end = begin + 1;
    while (end < head.size() && total + kBetween.size() + widths[end] <= terminal.width())
      total += kBetween.size() + widths[end++];
    const auto line = [&](const Cells& cells) {
      std::string said = left_aligned(cells[0], widths[0]);
      for (std::size_t i = begin; i < end; ++i) {
        said += kBetween;
        said += i < left_columns ? left_aligned(cells[i], widths[i])
                                 : right_aligned(cells[i], widths[i]);
      }
      said.erase(said.find_last_not_of(' ') + 1);
      return said;
    };
    text += (text.empty() ? "" : "\n") + terminal.dim(line(head)) + "\n";
    for (const Cells& row : rows)
      text += line(row) + "\n";
    begin = end;
  }
  return text;
}

std::string paragraph(std::string_view text, const Terminal& terminal) {
  std::string lines;
  for (const std::string& line : wrapped_lines(text, terminal.width()))
    lines += line + "\n";
  return lines;
}

std::string value_text(const Json& value) {
  if (value.is_null())
    return "-";
  if (value.is_number_float())
    return number_text(value.get<double>());
  return cut_to(value.is_string() ? value.get<std::string>() : value.dump(), kWidestCell);
}

std::string setting_text(const Json& value) {
  if (value.is_number_float() && value.dump().size() > kLongestWritten) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", value.get<double>());
    return text.data();
  }
  return value.is_null()     ? "-"
         : value.is_string() ? cut_to(value.get<std::string>(), kWidestCell)
                             : cut_to(value.dump(), kWidestCell);
}

std::string csv_value(const Json& value) {
  if (value.is_null())
    return "";
  return csv_field(value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace treadle::cli
