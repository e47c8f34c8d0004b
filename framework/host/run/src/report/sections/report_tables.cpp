#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "report/report_html.h"
#include "report/sections/report_forecasts.h"
#include "report/sections/report_metrics.h"
#include "report/sections/report_residuals.h"
#include "report/sections/report_sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

constexpr std::size_t kMostRows = 600;
constexpr std::size_t kMostClassesWithShares = 20;
constexpr std::size_t kMostClassesBeside = 6;

/// Labels, or 0, 1, 2 … where a table has none.
std::string label(const Json& labels, std::size_t index) {
  if (labels.is_array() && index < labels.size())
    return html::fact(labels[index]);
  return std::to_string(index);
}

std::string confusion_cell(double value, double row_total, bool is_right, bool with_share) {
  const double share = row_total > 0 ? value / row_total : 0;
  const int level = static_cast<int>(std::ceil(std::min(share, 1.0) * 5 - 1e-9));
  std::string text = "<td";
  if (level > 0) {
    text += std::string(" class=\"") + (is_right ? "good-" : "bad-") + std::to_string(level) +
            (level > 3 ? " heavy" : "") + "\"";
  }
  text += ">" + html::amount(value);
  if (with_share) {
    text += "<small>" + std::to_string(std::lround(share * 100)) + " %</small>";
  }
  return text + "</td>";
}

std::string confusion_matrix(const TargetTable& of_target) {
  const Json& stored = *of_target.table;
  const Json& values = at_path(stored, {"values"});
  if (!values.is_array() || values.empty())
    return {};
  const std::size_t classes = values.size();
  std::string text =
      "<p class=\"note\">Rows are the actual classes, columns the predicted ones; "
      "percentages are of the row.</p><div class=\"scroll\"><table class=\"confusion\">"
      "<thead><tr><th class=\"axis\">actual ↓ predicted →</th>";
  for (std::size_t j = 0; j < classes; ++j)
    text += "<th scope=\"col\">" + label(at_path(stored, {"column_labels"}), j) + "</th>";
  text += "<th class=\"axis\">rows</th></tr></thead><tbody>";
  for (std::size_t i = 0; i < classes; ++i) {
    double total = 0;
    for (const Json& value : values[i])
      total += value.is_number() ? value.get<double>() : 0;
    text += "<tr><th scope=\"row\">" + label(at_path(stored, {"row_labels"}), i) + "</th>";
    for (std::size_t j = 0; j < values[i].size(); ++j) {
      const Json& value = values[i][j];
      text += confusion_cell(value.is_number() ? value.get<double>() : 0, total, i == j,
                             classes <= kMostClassesWithShares);
    }
    text += "<td class=\"total\">" + html::amount(total) + "</td></tr>\n";
  }
  const std::string title =
      "Confusion matrix" + (of_target.target.empty() ? "" : ": " + html::escape(of_target.target));
  return html::card(title, text + "</tbody></table></div>");
}

/// Which columns hold nothing but whole numbers: in the others each number has its decimals.
std::vector<bool> whole_columns(const Json& values) {
  std::vector<bool> whole(values.empty() ? 0 : values.front().size(), true);
  for (const Json& row : values) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      whole[i] = whole[i] && i < row.size() && row[i].is_number() &&
                 row[i].get<double>() == std::round(row[i].get<double>());
    }
  }
  return whole;
}

std::string plain_table(const Json& stored) {
  const Json& values = at_path(stored, {"values"});
  const Json& row_labels = at_path(stored, {"row_labels"});
  const Json& column_labels = at_path(stored, {"column_labels"});
  const bool has_row_labels = row_labels.is_array() && !row_labels.empty();
  std::vector<std::string> head;
  if (column_labels.is_array() && !column_labels.empty()) {
    if (has_row_labels)
      head.emplace_back();
    for (const Json& name : column_labels)
      head.push_back(html::fact(name));
  }
  const std::vector<bool> whole = whole_columns(values);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < values.size() && i < kMostRows; ++i) {
    std::vector<std::string> row;
    if (has_row_labels)
      row.push_back(label(row_labels, i));
    for (std::size_t k = 0; k < values[i].size(); ++k) {
      row.push_back(k < whole.size() && whole[k] ? html::amount(values[i][k].get<double>())
                                                 : html::number(values[i][k]));
    }
    rows.push_back(std::move(row));
  }
  return html::scrolling(html::table("", head, rows), true);
}

/// Numbers that exist once per class, "recall.setosa", as a table with a row per class.
std::string class_table(const ReportInput& input) {
  std::vector<std::string> columns;
  std::vector<std::string> classes;
  const auto add = [](std::vector<std::string>& list, std::string word) {
    if (std::find(list.begin(), list.end(), word) == list.end())
      list.push_back(std::move(word));
  };
  for (const std::string& name : metric_names(input)) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos)
      continue;
    add(columns, name.substr(0, dot));
    add(classes, name.substr(dot + 1));
  }
  if (columns.empty())
    return {};
  std::vector<std::string> head{"class"};
  for (const std::string& column : columns)
    head.push_back(html::escape(column));
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : classes) {
    rows.push_back({html::escape(name)});
    for (const std::string& column : columns)
      rows.back().push_back(metric_value(input, column + "." + name));
  }
  return html::card("By class", html::scrolling(html::table("", head, rows), true));
}

}  // namespace

std::vector<TargetTable> find_tables(const ReportInput& input, std::string_view name) {
  return find_tables_in(at_path(input.result, {"tables"}), name);
}

std::vector<TargetTable> find_tables_in(const Json& tables, std::string_view name) {
  std::vector<TargetTable> found;
  if (!tables.is_array())
    return found;
  for (const Json& stored : tables) {
    std::string target = text_at_path(stored, {"name"});
    if (!target.ends_with(name) || at_path(stored, {"values"}).empty())
      continue;
    target.resize(target.size() - name.size());
    if (!target.empty() && !target.ends_with('/'))
      continue;  // another name that ends alike
    if (!target.empty())
      target.pop_back();
    found.push_back({std::move(target), &stored});
  }
  return found;
}

std::string result_tables(const ReportInput& input) {
  std::string text;
  std::vector<const Json*> shown;
  std::string matrices;
  bool are_small = true;
  for (const TargetTable& matrix : find_tables(input, "confusion_matrix")) {
    shown.push_back(matrix.table);
    matrices += confusion_matrix(matrix);
    are_small = are_small && at_path(*matrix.table, {"values"}).size() <= kMostClassesBeside;
  }
  const std::string by_class = matrices + class_table(input);
  text += are_small && !shown.empty() ? html::side_by_side(by_class) : by_class;
  text += forecasts(input);
  for (const Json* drawn : forecast_tables(input))
    shown.push_back(drawn);
  text += residuals(input);
  for (const char* name : {"residual_sample", "residual_histogram"}) {
    for (const TargetTable& drawn : find_tables(input, name))
      shown.push_back(drawn.table);
  }
  const Json& tables = at_path(input.result, {"tables"});
  if (!tables.is_array())
    return text;
  for (const Json& stored : tables) {
    const bool is_shown = std::find(shown.begin(), shown.end(), &stored) != shown.end();
    if (is_shown || at_path(stored, {"values"}).empty())
      continue;
    text += html::card(html::escape(text_at_path(stored, {"name"})), plain_table(stored));
  }
  return text;
}

}  // namespace treadle::report
