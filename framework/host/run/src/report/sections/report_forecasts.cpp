#include "report/sections/report_forecasts.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "evaluation/forecast_sample.h"
#include "evaluation/metric_breakdown.h"
#include "report/report_html.h"
#include "report/sections/report_metrics.h"
#include "report/sections/report_sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

constexpr const char* kNoScript = "This chart needs JavaScript; result.json leads to its numbers.";

std::vector<TargetTable> tables_called(const ReportInput& input, std::string_view name) {
  std::vector<TargetTable> of_test = find_tables_in(at_path(test_of(input), {"tables"}), name);
  return of_test.empty() ? find_tables(input, name) : of_test;
}

/// "q0.1" is the quantile 0.1.
std::optional<double> quantile_in(const std::string& column) {
  if (column.size() < 2 || column[0] != 'q')
    return std::nullopt;
  char* end = nullptr;
  const double level = std::strtod(column.c_str() + 1, &end);
  return *end == '\0' && level > 0 && level < 1 ? std::optional(level) : std::nullopt;
}

/// Which columns bound intervals: the widest first, each from a quantile to the one above 0.5 that
/// is as far from the other end.
Json bands_of(const Json& columns) {
  std::map<double, std::size_t> quantiles;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].is_string()) {
      if (const auto level = quantile_in(columns[i].get<std::string>()))
        quantiles.emplace(*level, i);
    }
  }
  std::vector<std::pair<double, std::size_t>> sorted(quantiles.begin(), quantiles.end());
  Json bands = Json::array();
  for (std::size_t i = 0; i < sorted.size() / 2; ++i) {
    const auto& [lower, lower_column] = sorted[i];
    const auto& [upper, upper_column] = sorted[sorted.size() - 1 - i];
    if (lower < 0.5 && upper > 0.5) {
      bands.push_back({{"lower", lower_column},
                       {"upper", upper_column},
                       {"label", html::fact(columns[lower_column]) + " to " +
                                     html::fact(columns[upper_column])}});
    }
  }
  return bands;
}

/// The names of the numbers of a target, for the picker.
std::string name_of_number(const std::string& target, std::size_t number, bool several) {
  if (!several)
    return target;
  return (target.empty() ? "number " : target + ".") + std::to_string(number);
}

/// A table "forecast_sample" as a list of lines: one for each forecast and number.
void add_forecasts(const TargetTable& found, Json& lines) {
  const Json& table = *found.table;
  const Json& columns = at_path(table, {"column_labels"});
  const Json& labels = at_path(table, {"row_labels"});
  const Json& rows = at_path(table, {"values"});
  constexpr std::size_t kForecast = 0, kNumber = 1, kStep = 2;
  bool several = false;
  for (const Json& row : rows)
    several = several || (row.size() > kNumber && row[kNumber] != 0.0);
  const Json bands = bands_of(columns);
  std::pair<Json, Json> last;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    if (row.size() < columns.size() || columns.size() < 5)
      return;
    if (std::pair key(row[kForecast], row[kNumber]); lines.empty() || key != last) {
      last = std::move(key);
      lines.push_back(
          {{"label", i < labels.size() ? labels[i] : Json("")},
           {"number", name_of_number(found.target, row[kNumber].get<std::size_t>(), several)},
           {"bands", bands},
           {"columns", columns},
           {"rows", Json::array()}});
    }
    Json shown = Json::array();
    for (std::size_t k = 0; k < row.size(); ++k)
      shown.push_back(k < kStep ? Json(nullptr) : row[k]);
    lines.back()["rows"].push_back(std::move(shown));
  }
}

Json drawn_forecasts(const ReportInput& input) {
  Json lines = Json::array();
  for (const TargetTable& found : tables_called(input, internal::ForecastSample::kTable))
    add_forecasts(found, lines);
  return lines;
}

std::string table_by_series(const TargetTable& found) {
  const Json& table = *found.table;
  std::vector<std::string> head{"series"};
  for (const Json& name : at_path(table, {"column_labels"}))
    head.push_back(html::fact(name));
  const Json& labels = at_path(table, {"row_labels"});
  const Json& values = at_path(table, {"values"});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < values.size(); ++i) {
    rows.push_back({i < labels.size() ? html::fact(labels[i]) : std::to_string(i)});
    for (const Json& value : values[i])
      rows.back().push_back(html::number(value));
  }
  const std::string of = found.target.empty() ? "" : ": " + html::escape(found.target);
  return html::card("By series" + of, html::scrolling(html::table("", head, rows), true));
}

}  // namespace

std::vector<const Json*> forecast_tables(const ReportInput& input) {
  std::vector<const Json*> shown;
  for (const char* name : {internal::ForecastSample::kTable, internal::MetricsByStep::kTable,
                           internal::MetricsBySeries::kTable}) {
    for (const TargetTable& found : find_tables(input, name))
      shown.push_back(found.table);
  }
  return shown;
}

std::string forecasts(const ReportInput& input) {
  std::string text;
  if (const Json lines = drawn_forecasts(input); !lines.empty()) {
    std::vector<std::string> options;
    for (const Json& line : lines) {
      const std::string number = text_at_path(line, {"number"});
      options.push_back(text_at_path(line, {"label"}) + (number.empty() ? "" : ", " + number));
    }
    text += html::chart_card("Forecasts", "forecast-chart",
                             html::picker("forecast-picker", "forecast", options), kNoScript);
  }
  std::vector<std::string> metrics;
  for (const TargetTable& found : tables_called(input, internal::MetricsByStep::kTable)) {
    for (const Json& name : at_path(*found.table, {"column_labels"}))
      metrics.push_back((found.target.empty() ? "" : found.target + "/") + html::fact(name));
  }
  if (!metrics.empty()) {
    text += html::chart_card("By step of the horizon", "by-step-chart",
                             html::picker("by-step-picker", "metric", metrics), kNoScript);
  }
  text = html::side_by_side(text);
  for (const TargetTable& found : tables_called(input, internal::MetricsBySeries::kTable))
    text += table_by_series(found);
  return text;
}

Json forecast_data(const ReportInput& input) {
  Json by_step = Json::array();
  for (const TargetTable& found : tables_called(input, internal::MetricsByStep::kTable)) {
    const Json& columns = at_path(*found.table, {"column_labels"});
    for (std::size_t i = 0; i < columns.size(); ++i) {
      Json values = Json::array();
      for (const Json& row : at_path(*found.table, {"values"}))
        values.push_back(i < row.size() ? row[i] : Json());
      by_step.push_back({{"name", columns[i]}, {"values", std::move(values)}});
    }
  }
  return {{"forecasts", drawn_forecasts(input)}, {"by_step", std::move(by_step)}};
}

}  // namespace treadle::report
