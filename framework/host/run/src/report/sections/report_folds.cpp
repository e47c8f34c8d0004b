#include "report/sections/report_folds.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "report/report_html.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

struct Part {
  std::string_view key;
  std::string_view words;
};
constexpr std::array kParts = {Part{"training", "trains"}, Part{"validation", "validates"},
                               Part{"test", "tests"}};

// Widths are shares of 1000 units, which the picture stretches to the page.
constexpr double kWidth = 1000;
constexpr double kThinnest = 1.5;  // still seen

std::string bars(const Json& fold, double steps) {
  std::string text;
  for (const Part& part : kParts) {
    for (const Json& stretch : at_path(fold, {part.key})) {
      const auto begin = stretch.at(0).get<double>();
      const auto end = stretch.at(1).get<double>();
      char rectangle[200];
      std::snprintf(rectangle, sizeof(rectangle),
                    "<rect class=\"%.*s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"12\"/>",
                    static_cast<int>(part.key.size()), part.key.data(), kWidth * begin / steps,
                    std::max(kWidth * (end - begin) / steps, kThinnest));
      text += rectangle;
    }
  }
  return "<svg class=\"fold\" viewBox=\"0 0 1000 12\" preserveAspectRatio=\"none\" "
         "role=\"img\">" +
         text + "</svg>";
}

}  // namespace

std::string folds_card(const ReportInput& input) {
  const Json& plan = at_path(input.result, {"plan"});
  const Json& folds = at_path(plan, {"folds"});
  const Json& steps = at_path(plan, {"steps"});
  if (!folds.is_array() || folds.size() < 2 || !steps.is_number_integer() ||
      steps.get<std::int64_t>() < 1)
    return {};
  std::string legend;
  for (const Part& part : kParts) {
    const bool is_there = std::any_of(folds.begin(), folds.end(), [&](const Json& fold) {
      return at_path(fold, {part.key}).is_array();
    });
    if (is_there) {
      legend += "<span class=\"key\"><i class=\"" + std::string(part.key) + "\"></i>" +
                std::string(part.words) + "</span>";
    }
  }
  std::string text = "<p class=\"note keys\">" + legend + "</p><table class=\"folds\"><tbody>";
  for (const Json& fold : folds) {
    text += "<tr><th>" + html::escape(text_at_path(fold, {"name"})) + "</th><td>" +
            bars(fold, steps.get<double>()) + "</td></tr>";
  }
  text += "<tr class=\"axis\"><th></th><td><span>" + html::escape(text_at_path(plan, {"first"})) +
          "</span><span>" + html::escape(text_at_path(plan, {"last"})) + "</span></td></tr>";
  return html::card("Folds in time", text + "</tbody></table>");
}

}  // namespace treadle::report
