#include "report/report_html.h"

#include <cmath>
#include <cstdio>

#include <treadle/base/utf8.h>

namespace treadle::html {
namespace {

constexpr std::string_view kDash = "–";

template <typename... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t length = utf8_character(text);
    if (length != 1) {
      escaped += length == 0 ? std::string_view("\uFFFD") : text.substr(0, length);
      text.remove_prefix(length == 0 ? 1 : length);
      continue;
    }
    switch (text.front()) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += text.front();
    }
    text.remove_prefix(1);
  }
  return escaped;
}

std::string script_json(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

std::string number(const nlohmann::json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    return std::string(kDash);
  const double x = value.get<double>();
  const double size = std::abs(x);
  std::string text = size != 0 && (size < 1e-3 || size >= 1e6) ? print("%.3e", x)
                     : size >= 1000                            ? print("%.1f", x)
                                                               : print("%.4f", x);
  if (text.front() == '-')
    text.replace(0, 1, "−");
  return text;
}

std::string count(const nlohmann::json& value) {
  if (!value.is_number_integer())
    return std::string(kDash);
  std::string digits = value.dump();
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, "\u202F");
  }
  if (first == 1)
    digits.replace(0, 1, "−");
  return digits;
}

std::string amount(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) < 1e-9 && std::abs(whole) < 1e15
             ? count(static_cast<std::int64_t>(whole))
             : number(value);
}

/// A stored fact of any kind, for a table.
std::string fact(const nlohmann::json& value) {
  if (value.is_string())
    return escape(value.get<std::string>());
  if (value.is_number_integer())
    return count(value);
  return escape(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string seconds(const nlohmann::json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    return std::string(kDash);
  const double time = value.get<double>();
  if (time < 1)
    return print("%.2f s", time);
  if (time < 59.95)
    return print("%.1f s", time);
  const long long whole = std::llround(time);
  if (whole < 3600)
    return print("%lld min %02lld s", whole / 60, whole % 60);
  return print("%lld h %02lld min", whole / 3600, whole % 3600 / 60);
}

std::string bytes(const nlohmann::json& value) {
  if (!value.is_number())
    return std::string(kDash);
  struct Unit {
    double size;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1024.0 * 1024 * 1024, "GiB"}, {1024.0 * 1024, "MiB"}, {1024, "KiB"}};
  const double size = value.get<double>();
  for (const Unit& unit : kUnits) {
    if (size >= unit.size)
      return print("%.1f ", size / unit.size) + unit.name;
  }
  return print("%.0f bytes", size);
}

std::string share(const nlohmann::json& value) {
  return value.is_number() ? print("%.1f %%", 100 * value.get<double>()) : std::string(kDash);
}

std::string table(std::string_view classes, const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<table class=\"" + std::string(classes) + "\">";
  if (!head.empty()) {
    text += "<thead><tr>";
    for (const std::string& cell : head)
      text += "<th scope=\"col\">" + cell + "</th>";
    text += "</tr></thead>";
  }
  text += "<tbody>";
  for (const std::vector<std::string>& row : rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      text += i == 0 ? "<th scope=\"row\">" + row[i] + "</th>" : "<td>" + row[i] + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table>";
}

std::string card(std::string_view title, std::string_view content) {
  if (content.empty())
    return {};
  return "<section class=\"card\"><h2>" + std::string(title) + "</h2>\n" + std::string(content) +
         "</section>\n";
}

std::string folded_card(std::string_view title, std::string_view content) {
  if (content.empty())
    return {};
  return "<section class=\"card\"><details><summary>" + std::string(title) + "</summary>\n" +
         std::string(content) + "</details></section>\n";
}

std::string scrolling(std::string_view content, bool tall) {
  return std::string(tall ? "<div class=\"scroll tall\">" : "<div class=\"scroll\">") +
         std::string(content) + "</div>\n";
}

/// Cards beside each other where there is room.
std::string side_by_side(std::string_view cards) {
  return cards.empty() ? std::string() : "<div class=\"pair\">" + std::string(cards) + "</div>\n";
}

std::string picker(std::string_view id, std::string_view label,
                   const std::vector<std::string>& options) {
  std::string text = "<select class=\"chip\" id=\"" + std::string(id) + "\" aria-label=\"" +
                     std::string(label) + "\">";
  for (std::size_t i = 0; i < options.size(); ++i)
    text += "<option value=\"" + std::to_string(i) + "\">" + escape(options[i]) + "</option>";
  return text + "</select>";
}

std::string chart_card(std::string_view title, std::string_view canvas, std::string_view controls,
                       std::string_view no_script) {
  return "<section class=\"card\"><div class=\"chart-head\"><h2>" + std::string(title) +
         "</h2><div class=\"chips needs-script\" hidden>" + std::string(controls) +
         "</div></div>\n<div class=\"chart needs-script\" hidden><canvas id=\"" +
         std::string(canvas) + "\" role=\"img\" aria-label=\"" + std::string(title) +
         "\"></canvas></div>\n<noscript><p class=\"note\">" + std::string(no_script) +
         "</p></noscript></section>\n";
}

}  // namespace treadle::html
