#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "evaluation/forecast_sample.h"
#include "evaluation/metric_breakdown.h"
#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;

/// Of all outputs together and of each, so that the page stays small and quick.
constexpr std::size_t kMostPoints = 6000;
constexpr std::size_t kFewestPoints = 20;

/// A table of the result, and the target it is about; empty where there is only one.
struct TargetTable {
  std::string target;
  const Json* table;

  std::string titled(const std::string& title) const {
    return target.empty() ? title : title + ": " + target;
  }
};

/// The name of a table without its target: "residual_sample" of "price/residual_sample".
std::string name_of(const Json& table) {
  std::string name = text_at_path(table, {"name"});
  return name.erase(0, name.rfind('/') + 1);
}

/// The tables of this name that are not empty, one for each target.
std::vector<TargetTable> find_tables(const Json& tables, std::string_view name) {
  std::vector<TargetTable> found;
  for (const Json& table : tables) {
    if (name_of(table) != name || at_path(table, {"values"}).empty())
      continue;
    std::string target = text_at_path(table, {"name"});
    target.resize(target.size() - name.size());
    if (!target.empty())
      target.pop_back();
    found.push_back({std::move(target), &table});
  }
  return found;
}

/// The tables of the test rows, where there are any.
std::vector<TargetTable> evaluated_tables(const Json& result, std::string_view name) {
  std::vector<TargetTable> of_test = find_tables(at_path(result, {"test", "tables"}), name);
  return of_test.empty() ? find_tables(at_path(result, {"tables"}), name) : of_test;
}

/// Shows a table of the result as it is; `head` is above the labels of its rows.
Json table_card(Json title, const Json& table, std::string_view kind, std::string_view head = {}) {
  Json block = table;
  block.update({{"block", kind}, {"head", head}});
  return card(std::move(title), {std::move(block)});
}

/// A chart of tables of the same name.
Json tables_chart(std::string_view title, std::string_view kind,
                  const std::vector<TargetTable>& tables) {
  List drawn;
  for (const TargetTable& one : tables) {
    Json table = *one.table;
    table["target"] = one.target;
    drawn.push_back(std::move(table));
  }
  return drawn.empty() ? Json() : card(title, {chart(kind, {{"tables", std::move(drawn)}})});
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
  for (const std::string& name : numbers.names) {
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

/// Six digits, which no screen can tell from more.
Json rounded(const Json& number) {
  if (!number.is_number())
    return number;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", number.get<double>());
  return std::strtod(text.data(), nullptr);
}

/// The actual and the predicted values, or how often which difference occurs, by output.
Json residuals_card(const Json& result, std::string_view title, std::string_view kind,
                    std::string_view name) {
  std::vector<TargetTable> tables = find_tables(at_path(result, {"tables"}), name);
  const Json& described = at_path(result, {"data", "targets"});
  List thinned;
  for (TargetTable& one : tables) {
    if (one.target.empty() && described.is_array() && described.size() == 1)
      one.target = text_at_path(described.front(), {"name"});
    const Json& values = at_path(*one.table, {"values"});
    const Json& outputs = at_path(*one.table, {"outputs"});
    const std::size_t most =
        std::max(kMostPoints, outputs.is_number() ? kFewestPoints * outputs.get<std::size_t>() : 0);
    const std::size_t stride = (values.size() + most - 1) / most;
    Json kept = Json::array();
    for (std::size_t i = 0; i < values.size(); i += stride) {
      kept.push_back(Json::array());
      for (const Json& value : values[i])
        kept.back().push_back(rounded(value));
    }
    thinned.push_back(
        {{"column_labels", at_path(*one.table, {"column_labels"})}, {"values", std::move(kept)}});
  }
  for (std::size_t i = 0; i < tables.size(); ++i)
    tables[i].table = &thinned[i];
  return tables_chart(title, kind, tables);
}

List forecast_blocks(const Json& result) {
  List blocks{group({tables_chart("Forecasts", "forecasts",
                                  evaluated_tables(result, internal::ForecastSample::kTable)),
                     tables_chart("By step of the horizon", "by_step",
                                  evaluated_tables(result, internal::MetricsByStep::kTable))})};
  for (const TargetTable& one : evaluated_tables(result, internal::MetricsBySeries::kTable))
    blocks.push_back(table_card(one.titled("By series"), *one.table, "numbers", "series"));
  return blocks;
}

List residual_blocks(const Json& result) {
  constexpr std::string_view kSample = "residual_sample";
  Json samples = residuals_card(result, "Predicted and actual", "scatter", kSample);
  Json errors;
  if (!samples.is_null()) {
    const Json& tables = samples.at("blocks").front().at("tables");
    if (tables.size() > 1 || tables.front().at("column_labels").front() == "output")
      errors = card("Error by output", {Json{{"block", "errors"}, {"tables", tables}}});
  }
  return {group({std::move(samples),
                 residuals_card(result, "Residuals", "histogram", "residual_histogram")}),
          std::move(errors)};
}

}  // namespace

List result_tables(const Json& result, const Numbers& numbers) {
  constexpr std::size_t kMostClassesBeside = 6;
  constexpr std::string_view kShown[] = {"confusion_matrix",
                                         "residual_sample",
                                         "residual_histogram",
                                         internal::ForecastSample::kTable,
                                         internal::MetricsByStep::kTable,
                                         internal::MetricsBySeries::kTable};
  const Json& tables = at_path(result, {"tables"});
  List by_class;
  bool are_small = true;
  for (const TargetTable& matrix : find_tables(tables, "confusion_matrix")) {
    by_class.push_back(table_card(matrix.titled("Confusion matrix"), *matrix.table, "confusion"));
    are_small = are_small && at_path(*matrix.table, {"values"}).size() <= kMostClassesBeside;
  }
  const bool are_beside = are_small && !by_class.empty();
  by_class.push_back(class_card(numbers));
  List blocks = are_beside ? List{group(std::move(by_class))} : std::move(by_class);
  append(blocks, forecast_blocks(result));
  append(blocks, residual_blocks(result));
  for (const Json& table : tables) {
    const bool is_shown =
        std::find(std::begin(kShown), std::end(kShown), name_of(table)) != std::end(kShown);
    if (!is_shown && !at_path(table, {"values"}).empty())
      blocks.push_back(table_card(at_path(table, {"name"}), table, "numbers"));
  }
  return blocks;
}

}  // namespace treadle::report
