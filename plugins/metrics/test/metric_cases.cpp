#include "metric_cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/tensor.h>

#include <treadle/core/validation/metric_computer.h>
#include <treadle/testing/support/evaluated_rows.h>

#include "this_plugin.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, TargetKind>, 3> kKinds{
    {{"classes", TargetKind::kClasses},
     {"labels", TargetKind::kLabels},
     {"numbers", TargetKind::kNumbers}}};

/// [positions] or [positions, width]; with steps [rows, steps, ...].
at::Tensor tensor_of(const json& numbers, std::int64_t steps) {
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(numbers.size())};
  std::vector<double> all;
  for (const json& number : numbers) {
    if (!number.is_array()) {
      all.push_back(number.get<double>());
      continue;
    }
    sizes.resize(2, static_cast<std::int64_t>(number.size()));
    for (const json& one : number)
      all.push_back(one.get<double>());
  }
  if (steps > 0) {
    sizes[0] /= steps;
    sizes.insert(sizes.begin() + 1, steps);
  }
  return at::tensor(all, at::kDouble).reshape(sizes);
}

bool is_there(const json& one, const char* key) {
  return one.contains(key) && !one.at(key).is_null();
}

TargetSpec target_of(const json& one, std::int64_t steps) {
  TargetSpec target;
  target.name = "target";
  target.kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& kind) {
                  return one.at("kind") == kind.first;
                })->second;
  target.class_names = one.value("classes", std::vector<std::string>());
  target.shape.clear();
  if (steps > 0)
    target.shape.push_back(steps);
  if (target.kind != TargetKind::kClasses)
    target.shape.push_back(static_cast<std::int64_t>(one.at("values").at(0).size()));
  return target;
}

EvaluatedRows rows_of_case(const json& one, const TargetSpec& target, std::int64_t steps) {
  const bool is_class = target.kind == TargetKind::kClasses;
  at::Tensor targets = tensor_of(one.at("targets"), steps);
  EvaluatedRows rows = evaluated_rows(target.kind, tensor_of(one.at("values"), steps),
                                      is_class ? targets.to(at::kLong) : targets);
  if (is_there(one, "logits"))
    rows.prediction.logits = tensor_of(one.at("logits"), steps);
  if (is_there(one, "decision")) {
    const at::Tensor decision = tensor_of(one.at("decision"), steps);
    rows.prediction.decision = decision.to(is_class ? at::kLong : at::kBool);
  }
  if (is_there(one, "extras")) {
    for (const auto& [name, values] : one.at("extras").items())
      rows.prediction.extras.push_back({name, tensor_of(values, steps)});
  }
  if (is_there(one, "weights")) {
    const at::Tensor weights = tensor_of(one.at("weights"), steps);
    if (steps > 0)
      rows.batch.position_weights = {weights};
    else
      rows.batch.weights = weights;
  }
  return rows;
}

/// EvaluatedRows::part() leaves the decision as it is.
EvaluatedRows part_of(const EvaluatedRows& rows, std::int64_t begin, std::int64_t end) {
  EvaluatedRows part = rows.part(begin, end);
  if (rows.prediction.decision.defined())
    part.prediction.decision = rows.prediction.decision.slice(0, begin, end);
  return part;
}

json number_of(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number > 0 ? "inf" : "-inf";
  return number;
}

json json_of(const MetricResult& result) {
  json values = json::object();
  for (const MetricValue& value : result.values) {
    values[value.name] = value.value.is_undefined() ? json{{"undefined", value.value.why()}}
                                                    : number_of(value.value);
  }
  json tables = json::object();
  for (const MetricTable& table : result.tables) {
    json rows = json::array();
    for (std::int64_t row = 0; row < table.values.size(0); ++row) {
      json cells = json::array();
      for (std::int64_t column = 0; column < table.values.size(1); ++column)
        cells.push_back(number_of(table.values[row][column].item<double>()));
      rows.push_back(std::move(cells));
    }
    tables[table.name] = {{"row_labels", table.row_labels},
                          {"column_labels", table.column_labels},
                          {"values", std::move(rows)}};
  }
  return {{"values", std::move(values)}, {"tables", std::move(tables)}};
}

json result_of(json document, const TargetSpec& target, const EvaluatedRows& rows) {
  const auto name = document.at("use").get<std::string>();
  document.erase("use");
  const auto started = [&] {
    auto metric = plugin().make<MetricComputer>(name, document);
    metric->start(target);
    metric->reset();
    return metric;
  };
  const std::unique_ptr<MetricComputer> workers[] = {started(), started()};
  std::int64_t size = 1;
  for (std::int64_t begin = 0; begin < rows.batch.size(); begin += size++) {
    const std::int64_t end = std::min(begin + size, rows.batch.size());
    update(*workers[size % 2], part_of(rows, begin, end), target);
  }
  workers[0]->merge(*workers[1]);
  return json_of(workers[0]->compute());
}

}  // namespace

json run_case(const json& one) {
  const std::int64_t steps = one.value("steps", std::int64_t{0});
  const TargetSpec target = target_of(one, steps);
  const EvaluatedRows rows = rows_of_case(one, target, steps);
  json results = json::array();
  for (const json& document : one.at("metrics"))
    results.push_back(result_of(document, target, rows));
  return results;
}

}  // namespace treadle::testing
