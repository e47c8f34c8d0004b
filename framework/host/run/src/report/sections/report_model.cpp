#include "report/sections/report_model.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "report/report_html.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

std::string shape_text(const Json& shape) {
  std::string text;
  if (shape.is_object()) {
    for (const auto& [port, extents] : shape.items())
      text += (text.empty() ? "" : ", ") + html::escape(port) + ": " + shape_text(extents);
  } else if (shape.is_array()) {
    for (const Json& extent : shape)
      text += (text.empty() ? "" : " × ") + html::fact(extent);
  } else if (!shape.is_null()) {
    text = html::fact(shape);
  }
  return text;
}

bool has_components(const Json& value) {
  return value.is_object() ||
         (value.is_array() && std::any_of(value.begin(), value.end(),
                                          [](const Json& element) { return element.is_object(); }));
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8U | (i < given ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= given ? kDigits[group >> (18U - 6U * i) & 63U] : '=';
  }
  return text;
}

/// As an image a picture can run no script and load nothing, whatever is in it.
std::string picture(const std::string& svg) {
  const std::size_t begin = svg.find("<svg");
  if (begin == std::string::npos)
    return {};
  return html::scrolling(
      "<img class=\"model\" alt=\"The model's graph\" "
      "src=\"data:image/svg+xml;base64," +
          base64(std::string_view(svg).substr(begin)) + "\">",
      /*tall=*/true);
}

/// A cell whose leading spaces tell how deep the part lies.
std::string part_name(const std::string& text) {
  const std::size_t depth = std::min(text.find_first_not_of(' '), text.size());
  std::string name;
  for (std::size_t i = 0; i < depth; ++i)
    name += "\u00A0";
  return name + html::escape(std::string_view(text).substr(depth));
}

std::string parts_table(const std::vector<std::vector<std::string>>& parts) {
  if (parts.size() < 2)
    return {};
  std::vector<std::string> head;
  for (const std::string& name : parts.front())
    head.push_back(html::escape(name));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    for (std::size_t k = 0; k < parts[i].size(); ++k)
      row.push_back(k == 0 ? part_name(parts[i][k]) : html::escape(parts[i][k]));
  }
  return html::scrolling(html::table("parts", head, rows), true);
}

}  // namespace

std::string architecture_text(const Json& architecture) {
  if (!architecture.is_object())
    return architecture.is_null() ? std::string() : html::fact(architecture);
  std::string text = html::escape(text_at_path(architecture, {"use"}));
  std::string parameters;
  for (const auto& [key, value] : architecture.items()) {
    if (key == "use" || value.is_null())
      continue;
    const std::string shown = !has_components(value) ? html::fact(value)
                              : value.is_array()     ? "of " + std::to_string(value.size())
                                                     : std::string();
    parameters +=
        (parameters.empty() ? "" : ", ") + html::escape(key) + (shown.empty() ? "" : " ") + shown;
  }
  return parameters.empty() ? text : text + ": " + parameters;
}

std::string model_card(const ReportInput& input) {
  const Json& info = at_path(input.result, {"model_info"});
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string_view title, std::string text) {
    if (!text.empty())
      rows.push_back({std::string(title), std::move(text)});
  };
  add("name", html::escape(text_at_path(info, {"name"})));
  add("version", html::escape(text_at_path(info, {"version"})));
  add("architecture", architecture_text(at_path(info, {"architecture"})));
  if (at_path(info, {"parameter_count"}).is_number_integer())
    add("parameters", html::count(at_path(info, {"parameter_count"})));
  add("input shape", shape_text(at_path(info, {"input_shape"})));
  add("output shape", shape_text(at_path(info, {"output_shape"})));
  const std::string kept = kept_weights(input.result);
  return html::card("Model", rows.empty()
                                 ? ""
                                 : html::table("text facts", {}, rows) +
                                       (kept.empty() ? "" : "<p class=\"note\">" + kept + "</p>"));
}

std::string model_parts(const ReportInput& input) {
  const std::string drawn = picture(input.model.svg);
  const std::string listed = parts_table(input.model.parts);
  if (drawn.empty())
    return html::card("Model graph", listed);
  return html::side_by_side(html::card("Model graph", drawn) + html::card("Nodes", listed));
}

bool were_chosen(const Json& training) {
  return text_at_path(training, {"weights", "chosen"}) == "best";
}

std::string kept_weights(const Json& training) {
  const Json& epoch = at_path(training, {"weights", "epoch"});
  if (!epoch.is_number_integer())
    return {};
  const std::string holds = at_path(training, {"weights", "averaged"}) == true
                                ? "The model holds the average of the weights at "
                                : "The model holds the weights of ";
  if (!were_chosen(training))
    return holds + "the last epoch, " + html::count(epoch) + ".";
  const std::string by = text_at_path(training, {"weights", "by"});
  return holds + "epoch " + html::count(epoch) + ", the best" +
         (by.empty() ? "" : " by " + html::escape(by)) + ".";
}

std::string loss_label(const Json& result) {
  return at_path(result, {"transformed_target"}) == true
             ? "loss <span class=\"spread\">of the transformed target</span>"
             : "loss";
}

}  // namespace treadle::report
