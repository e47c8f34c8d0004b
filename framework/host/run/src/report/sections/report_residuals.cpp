#include "report/sections/report_residuals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/report_html.h"
#include "report/sections/report_sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

/// Of all outputs together: what a page draws quickly and a mail carries.
constexpr std::size_t kMostPoints = 6000;
constexpr std::size_t kFewestPoints = 20;

struct OutputResiduals {
  std::string name;
  std::vector<const Json*> sample;     ///< rows of the table, the output's column first if any
  std::vector<const Json*> histogram;  ///< likewise
};

/// Tables of several outputs have the output in their first column.
bool has_outputs(const Json& table) {
  const Json& columns = at_path(table, {"column_labels"});
  return columns.is_array() && !columns.empty() && columns.front() == "output";
}

std::size_t output_of(const Json& row, bool several) {
  return several && !row.empty() && row.front().is_number() ? row.front().get<std::size_t>() : 0;
}

/// Of one target, or of the only one.
std::vector<OutputResiduals> outputs_of_target(const std::string& target, const Json* sample,
                                               const Json* histogram) {
  std::vector<OutputResiduals> outputs;
  const auto sort_in = [&](const Json* table, auto member) {
    if (table == nullptr)
      return;
    for (const Json& row : at_path(*table, {"values"})) {
      const std::size_t output = output_of(row, has_outputs(*table));
      if (output >= outputs.size())
        outputs.resize(output + 1);
      (outputs[output].*member).push_back(&row);
    }
  };
  sort_in(sample, &OutputResiduals::sample);
  sort_in(histogram, &OutputResiduals::histogram);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].name = outputs.size() == 1
                          ? target
                          : (target.empty() ? "output " : target + ".") + std::to_string(i);
  }
  return outputs;
}

std::vector<OutputResiduals> outputs_of(const ReportInput& input) {
  std::map<std::string, std::pair<const Json*, const Json*>> of_targets;
  std::vector<std::string> order;
  const auto collect = [&](const char* name, auto member) {
    for (const TargetTable& found : find_tables(input, name)) {
      if (std::find(order.begin(), order.end(), found.target) == order.end())
        order.push_back(found.target);
      of_targets[found.target].*member = found.table;
    }
  };
  collect("residual_sample", &std::pair<const Json*, const Json*>::first);
  collect("residual_histogram", &std::pair<const Json*, const Json*>::second);
  const Json& targets = at_path(input.result, {"data", "targets"});
  const std::string only = targets.is_array() && targets.size() == 1
                               ? text_at_path(targets.front(), {"name"})
                               : std::string();
  std::vector<OutputResiduals> outputs;
  for (const std::string& target : order) {
    const auto& [sample, histogram] = of_targets.at(target);
    for (OutputResiduals& output :
         outputs_of_target(target.empty() ? only : target, sample, histogram))
      outputs.push_back(std::move(output));
  }
  return outputs;
}

/// The last `count` cells of a row as numbers of six digits, which no screen can tell from more.
Json numbers_of(const Json& row, std::size_t count) {
  Json numbers = Json::array();
  for (std::size_t i = row.size() - std::min(row.size(), count); i < row.size(); ++i) {
    if (!row[i].is_number()) {
      numbers.push_back(nullptr);
      continue;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", row[i].get<double>());
    numbers.push_back(std::strtod(text.data(), nullptr));
  }
  return numbers;
}

struct Errors {
  double mean_absolute = 0;
  double root_mean_square = 0;
  double mean = 0;
  std::size_t rows = 0;
};

Errors errors_of(const OutputResiduals& output) {
  Errors errors;
  for (const Json* row : output.sample) {
    if (row->size() < 2 || !row->back().is_number() || !(*row)[row->size() - 2].is_number())
      continue;
    const double residual = (*row)[row->size() - 2].get<double>() - row->back().get<double>();
    errors.mean_absolute += std::abs(residual);
    errors.root_mean_square += residual * residual;
    errors.mean += residual;
    ++errors.rows;
  }
  const auto count = static_cast<double>(errors.rows);
  errors.mean_absolute /= count;
  errors.root_mean_square = std::sqrt(errors.root_mean_square / count);
  errors.mean /= count;
  return errors;
}

std::string error_table(const std::vector<OutputResiduals>& outputs) {
  std::vector<std::vector<std::string>> rows;
  std::size_t sampled = 0;
  for (const OutputResiduals& output : outputs) {
    const Errors errors = errors_of(output);
    sampled = std::max(sampled, errors.rows);
    rows.push_back({html::escape(output.name), html::number(errors.mean_absolute),
                    html::number(errors.root_mean_square), html::number(errors.mean)});
  }
  return html::card("Error by output",
                    html::scrolling(html::table("",
                                                {"output", "mean absolute", "root mean square",
                                                 "mean of actual − predicted"},
                                                rows),
                                    true) +
                        "<p class=\"note\">Of the sample of " + std::to_string(sampled) +
                        " evaluated rows that is drawn here, in the data's units.</p>");
}

std::string chooser(const std::vector<OutputResiduals>& outputs) {
  std::vector<std::string> names;
  for (const OutputResiduals& output : outputs)
    names.push_back(output.name);
  return html::picker("output-picker", "output", names);
}

}  // namespace

std::string residuals(const ReportInput& input) {
  const std::vector<OutputResiduals> outputs = outputs_of(input);
  if (outputs.empty())
    return {};
  const bool several = outputs.size() > 1;
  std::string cards;
  if (!find_tables(input, "residual_sample").empty()) {
    cards +=
        html::chart_card("Predicted and actual", "scatter-chart", several ? chooser(outputs) : "",
                         "This chart needs JavaScript; result.json leads to its points.");
  }
  if (!find_tables(input, "residual_histogram").empty()) {
    cards += html::chart_card("Residuals", "histogram-chart", "",
                              "This chart needs JavaScript; result.json leads to its bins.");
  }
  return html::side_by_side(cards) + (several ? error_table(outputs) : "");
}

Json residual_data(const ReportInput& input) {
  const std::vector<OutputResiduals> outputs = outputs_of(input);
  Json data = Json::array();
  for (const OutputResiduals& output : outputs) {
    const std::size_t most = std::max(kFewestPoints, kMostPoints / outputs.size());
    const std::size_t stride = std::max<std::size_t>(1, (output.sample.size() + most - 1) / most);
    Json sample = Json::array();
    for (std::size_t i = 0; i < output.sample.size(); i += stride)
      sample.push_back(numbers_of(*output.sample[i], 2));
    Json histogram = Json::array();
    for (const Json* bin : output.histogram)
      histogram.push_back(numbers_of(*bin, 3));
    data.push_back({{"name", output.name},
                    {"sample", std::move(sample)},
                    {"histogram", std::move(histogram)}});
  }
  return data;
}

}  // namespace treadle::report
