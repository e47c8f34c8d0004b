#include "report/sections/report_adaptation.h"

#include <algorithm>
#include <cmath>
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

constexpr const char* kLoss = "loss";
/// Of more the script draws no marks: they would hide the line.
constexpr std::size_t kMostMarks = 200;
constexpr std::size_t kMostTableRows = 200;

const Json& tested_in(const ReportInput& input) {
  return at_path(input.result, {"prequential"});
}

const Json& number_in(const Json& numbers, const std::string& name) {
  return name == kLoss ? at_path(numbers, {kLoss}) : at_path(numbers, {"metrics", name});
}

/// The one that recovery is measured by, then the other metrics and the loss.
std::vector<std::string> names_in(const Json& tested) {
  std::vector<std::string> names{text_at_path(tested, {"recovery", "metric"})};
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const Json& metric : at_path(tested, {"metric_list"}))
    add(text_at_path(metric, {"name"}));
  add(kLoss);
  return names;
}

std::string windows_text(const Json& windows) {
  return windows.is_null() ? "never" : html::count(windows);
}

std::string changes_card(const Json& tested) {
  const Json& changes = at_path(tested, {"changes"});
  if (!changes.is_array() || changes.empty())
    return {};
  const std::string metric = text_at_path(tested, {"recovery", "metric"});
  const std::string shown = html::escape(metric);
  const Json& threshold = at_path(tested, {"recovery", "threshold"});
  const Json& share = at_path(tested, {"recovery", "share"});
  std::vector<std::string> head{"task", "from row", shown + " before", shown + " after"};
  if (threshold.is_number())
    head.push_back("windows to " + html::number(threshold));
  if (share.is_number())
    head.push_back("windows to " + html::share(share) + " of before");
  std::vector<std::vector<std::string>> rows;
  for (const Json& change : changes) {
    if (rows.size() == kMostTableRows)
      break;
    auto& row = rows.emplace_back();
    row = {html::escape(text_at_path(change, {"task"})), html::count(at_path(change, {"row"}))};
    if (at_path(change, {"window"}).is_null()) {
      row.push_back("not reached");
      row.resize(head.size());
      continue;
    }
    row.insert(row.end(), {html::number(number_in(at_path(change, {"before"}), metric)),
                           html::number(number_in(at_path(change, {"after"}), metric))});
    if (threshold.is_number())
      row.push_back(windows_text(at_path(change, {"windows_to_threshold"})));
    if (share.is_number())
      row.push_back(windows_text(at_path(change, {"windows_to_share"})));
  }
  std::string note =
      "<p class=\"note\">Before: the window before the one with the change; after: the one with "
      "the change. Windows are counted from that one, 0 for itself, up to the next change.";
  if (rows.size() < changes.size())
    note += " The first " + std::to_string(rows.size()) + " of " + std::to_string(changes.size()) +
            " changes; result.json has all.";
  return html::card("Changes of the task",
                    html::scrolling(html::table("", head, rows), true) + note + "</p>");
}

std::string stability_card(const Json& tested) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names_in(tested)) {
    const Json& variance = number_in(at_path(tested, {"variances"}), name);
    const Json deviation = variance.is_number() ? Json(std::sqrt(variance.get<double>())) : Json();
    rows.push_back({html::escape(name), html::number(number_in(tested, name)),
                    html::number(deviation), html::number(variance)});
  }
  return html::card(
      "Over the windows",
      html::scrolling(html::table("", {"", "mean", "deviation", "variance"}, rows), true) +
          "<p class=\"note\">Deviation and variance of the population of windows: the smaller, the "
          "more stable.</p>");
}

}  // namespace

std::string adaptation(const ReportInput& input) {
  const Json& tested = tested_in(input);
  if (at_path(tested, {"windows"}).empty())
    return {};
  std::string picker = "<select class=\"chip\" id=\"adaptation-picker\" aria-label=\"metric\">";
  for (const std::string& name : names_in(tested))
    picker += "<option>" + html::escape(name) + "</option>";
  return html::chart_card(
             "Tested, then trained on, in windows of " +
                 html::count(at_path(tested, {"window_rows"})) + " rows",
             "adaptation-chart", picker + "</select>",
             "This chart needs JavaScript; result.json has its numbers under \"prequential\".") +
         changes_card(tested) + stability_card(tested);
}

nlohmann::json adaptation_data(const ReportInput& input) {
  const Json& tested = tested_in(input);
  const Json& windows = at_path(tested, {"windows"});
  if (windows.empty())
    return Json();
  Json ends = Json::array();
  for (const Json& window : windows)
    ends.push_back(at_path(window, {"first_row"}));
  ends.push_back(at_path(windows.back(), {"first_row"}).get<std::int64_t>() +
                 at_path(windows.back(), {"rows"}).get<std::int64_t>());
  Json numbers = Json::object();
  for (const std::string& name : names_in(tested)) {
    Json& values = numbers[name] = Json::array();
    for (const Json& window : windows)
      values.push_back(number_in(window, name));
  }
  Json changes = Json::array();
  for (const Json& change : at_path(tested, {"changes"})) {
    if (changes.size() == kMostMarks || at_path(change, {"window"}).is_null())
      break;
    changes.push_back({{"row", at_path(change, {"row"})}, {"task", at_path(change, {"task"})}});
  }
  return {
      {"ends", std::move(ends)}, {"numbers", std::move(numbers)}, {"changes", std::move(changes)}};
}

}  // namespace treadle::report
