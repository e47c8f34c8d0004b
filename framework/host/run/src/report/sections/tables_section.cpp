#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "evaluation/forecast_sample.h"
#include "evaluation/metric_breakdown.h"
#include "evaluation/picture_sample.h"
#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;

/// Of all outputs together and of each, so that the page stays small and quick.
constexpr std::size_t kMostPoints = 6000;
constexpr std::size_t kFewestPoints = 20;

/// The name of a table without its target: "residual_sample" of "price/residual_sample".
std::string name_of(const ResultTable& table) {
  return table.name.substr(table.name.rfind('/') + 1);
}

/// The tables of this name that are not empty, each with its "target", which is empty where the run
/// has only one.
List find_tables(const std::vector<ResultTable>& tables, std::string_view name) {
  List found;
  for (const ResultTable& table : tables) {
    if (name_of(table) != name || table.values.empty())
      continue;
    std::string target = table.name;
    target.resize(target.size() - std::min(target.size(), name.size() + 1));
    found.push_back(to_json(table));
    found.back()["target"] = std::move(target);
  }
  return found;
}

/// The tables of the test rows, where there are any.
List evaluated_tables(const RunResult& result, std::string_view name) {
  List of_test = result.training.test ? find_tables(result.training.test->tables, name) : List();
  return of_test.empty() ? find_tables(result.tables, name) : of_test;
}

/// Shows a table of the result as it is; `head` is above the labels of its rows.
Json table_card(const std::string& title, Json table, std::string_view kind,
                std::string_view head = {}) {
  const std::string target = text_at_path(table, {"target"});
  table.update({{"block", kind}, {"head", head}});
  return card(target.empty() ? title : title + ": " + target, {std::move(table)});
}

/// A chart of tables of the same name.
Json tables_chart(std::string_view title, std::string_view kind, List tables) {
  return tables.empty() ? Json() : card(title, {chart(kind, {{"tables", std::move(tables)}})});
}

/// Numbers that exist once per class, "recall.setosa", as a table with a row per class.
Json class_card(const Numbers& numbers) {
  List columns{"class"};
  List rows;
  const auto place_of = [](List& list, const Json& head) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const Json& one) {
      return (one.is_array() ? one.front() : one) == head;
    });
    return static_cast<std::size_t>(found - list.begin());
  };
  for (const MetricValue& metric : numbers.metrics) {
    const std::string& name = metric.name;
    if (!is_of_one_class(name))
      continue;
    const std::size_t dot = name.find('.');
    const std::size_t column = place_of(columns, name.substr(0, dot));
    if (column == columns.size())
      columns.emplace_back(name.substr(0, dot));
    const std::size_t row = place_of(rows, name.substr(dot + 1));
    if (row == rows.size())
      rows.push_back(Json::array({name.substr(dot + 1)}));
    rows[row][column] = number_in(numbers.result, name);
  }
  return card("By class", {table(std::move(columns), std::move(rows))});
}

/// Every n-th row with six digits, which no screen can tell from more.
Json thinned(const Json& rows, std::size_t stride) {
  Json kept = Json::array();
  for (std::size_t i = 0; i < rows.size(); i += stride) {
    kept.push_back(rows[i]);
    for (Json& value : kept.back()) {
      std::array<char, 32> text{};
      if (value.is_number_float()) {
        std::snprintf(text.data(), text.size(), "%.6g", value.get<double>());
        value = std::strtod(text.data(), nullptr);
      }
    }
  }
  return kept;
}

/// The actual and the predicted values, or how often which difference occurs, by output.
List residual_tables(const RunResult& result, std::string_view name) {
  List tables = find_tables(result.tables, name);
  const Json& targets = at_path(result.data, {"targets"});
  for (Json& table : tables) {
    if (table["target"] == "" && targets.is_array() && targets.size() == 1)
      table["target"] = at_path(targets.front(), {"name"});
    const std::size_t outputs = table.value("outputs", std::size_t{1});
    const std::size_t most = std::max(kMostPoints, kFewestPoints * outputs);
    table["values"] = thinned(table["values"], (table["values"].size() + most - 1) / most);
  }
  return tables;
}

List forecast_blocks(const RunResult& result) {
  List blocks{group({tables_chart("Forecasts", "forecasts",
                                  evaluated_tables(result, internal::ForecastSample::kTable)),
                     tables_chart("By step of the horizon", "by_step",
                                  evaluated_tables(result, internal::MetricsByStep::kTable))})};
  for (const Json& table : evaluated_tables(result, internal::MetricsBySeries::kTable))
    blocks.push_back(table_card("By series", table, "numbers", "series"));
  return blocks;
}

/// The name of a class, or the number.
Json shown_value(const Json& classes, const Json& value) {
  if (classes.is_array() && value.is_number() &&
      value.get<double>() < static_cast<double>(classes.size()))
    return classes[static_cast<std::size_t>(value.get<double>())].at("name");
  return as("setting", value);
}

/// The names of a target's classes in the report, in order; null for numbers.
Json classes_of(const RunResult& result, const std::string& target) {
  const Json& targets = at_path(result.data, {"targets"});
  for (const Json& one : targets.is_array() ? targets : Json::array()) {
    if (target.empty() || one.at("name") == target)
      return one.value("classes", Json());
  }
  return {};
}

List picture_blocks(const RunResult& result) {
  List blocks;
  for (const Json& sample : evaluated_tables(result, internal::PictureSample::kTable)) {
    const std::string target = text_at_path(sample, {"target"});
    const Json classes = classes_of(result, target);
    List pictures;
    for (std::size_t i = 0; i < sample.at("values").size(); ++i) {
      const Json& values = sample.at("values")[i];
      const Json actual = shown_value(classes, values[1]);
      List label{actual};
      if (classes.is_null() || values[1] != values[2]) {
        label.push_back(", predicted ");
        label.push_back(shown_value(classes, values[2]));
      }
      if (values.size() > 3) {
        label.push_back(" (");
        label.push_back(as("share", values[3]));
        label.push_back(")");
      }
      pictures.push_back({{"picture", sample.at("row_labels")[i]},
                          {"is_wrong", !classes.is_null() && values[1] != values[2]},
                          {"label", std::move(label)}});
    }
    blocks.push_back(card(target.empty() ? "Predictions" : "Predictions: " + target,
                          {note("Held-out images, evenly spread over their rows."),
                           Json{{"block", "gallery"}, {"pictures", std::move(pictures)}}}));
  }
  return blocks;
}

List residual_blocks(const RunResult& result) {
  List samples = residual_tables(result, "residual_sample");
  Json errors;
  if (samples.size() > 1 || (!samples.empty() && samples[0].value("outputs", 1) > 1))
    errors = card("Error by output", {Json{{"block", "errors"}, {"tables", samples}}});
  return {group({tables_chart("Predicted and actual", "scatter", std::move(samples)),
                 tables_chart("Residuals", "histogram",
                              residual_tables(result, "residual_histogram"))}),
          std::move(errors)};
}

List decision_blocks(const RunResult& result) {
  List blocks{
      group({tables_chart("Curves", "decision_curves", evaluated_tables(result, "curves")),
             tables_chart("Reliability", "reliability", evaluated_tables(result, "reliability"))}),
      tables_chart("Scores by class", "scores", evaluated_tables(result, "score_histogram"))};
  for (const Json& thresholds : evaluated_tables(result, "thresholds"))
    blocks.push_back(table_card("Thresholds", thresholds, "numbers"));
  return blocks;
}

}  // namespace

List result_tables(const RunResult& result, const Numbers& numbers) {
  constexpr std::size_t kMostClassesBeside = 6;
  constexpr std::string_view kShown[] = {"confusion_matrix",
                                         "residual_sample",
                                         "residual_histogram",
                                         "curves",
                                         "reliability",
                                         "score_histogram",
                                         "thresholds",
                                         internal::ForecastSample::kTable,
                                         internal::PictureSample::kTable,
                                         internal::MetricsByStep::kTable,
                                         internal::MetricsBySeries::kTable};
  List by_class;
  bool are_small = true;
  for (const Json& matrix : find_tables(result.tables, "confusion_matrix")) {
    by_class.push_back(table_card("Confusion matrix", matrix, "confusion"));
    are_small = are_small && matrix.at("values").size() <= kMostClassesBeside;
  }
  const bool are_beside = are_small && !by_class.empty();
  by_class.push_back(class_card(numbers));
  List blocks = are_beside ? List{group(std::move(by_class))} : std::move(by_class);
  append(blocks, picture_blocks(result));
  append(blocks, decision_blocks(result));
  append(blocks, forecast_blocks(result));
  append(blocks, residual_blocks(result));
  for (const ResultTable& table : result.tables) {
    const bool is_shown =
        std::find(std::begin(kShown), std::end(kShown), name_of(table)) != std::end(kShown);
    if (!is_shown && !table.values.empty())
      blocks.push_back(table_card(table.name, to_json(table), "numbers"));
  }
  return blocks;
}

}  // namespace treadle::report
