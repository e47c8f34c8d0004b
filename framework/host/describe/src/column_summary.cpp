#include <treadle/host/describe/column_summary.h>

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/sort.h>
#include <nlohmann/json.hpp>

#include "ranks.h"
#include "stored_form.h"

namespace treadle::describe {
namespace {

/// numpy.histogram: a value belongs to the bin of its place, which rounding may move by one.
std::vector<std::int64_t> histogram_of(const at::Tensor& sorted, double least, double greatest) {
  const std::int64_t rows = sorted.size(0);
  if (!(greatest > least))
    return {rows};
  const at::Tensor bins =
      ((sorted / 2 - least / 2) / (greatest / 2 - least / 2) * static_cast<double>(kHistogramBins))
          .floor()
          .clamp(0, static_cast<double>(kHistogramBins - 1))
          .to(at::kLong);
  const at::Tensor counts = at::bincount(bins, {}, kHistogramBins);
  const auto* const count = counts.data_ptr<std::int64_t>();
  return {count, count + kHistogramBins};
}

NumberSummary summary_of(const at::Tensor& values) {
  const at::Tensor sorted = std::get<0>(at::sort(values)).contiguous();
  const auto* const value = sorted.data_ptr<double>();
  const std::int64_t rows = sorted.size(0);
  NumberSummary summary;
  summary.least = value[0];
  summary.greatest = value[rows - 1];
  // About the middle of the range, by which a large offset costs no digits.
  const double middle = summary.least / 2 + summary.greatest / 2;
  const at::Tensor centred = sorted - middle;
  const double shift = centred.mean().item<double>();
  summary.mean = middle + shift;
  summary.deviation = std::sqrt((centred - shift).square().mean().item<double>());
  for (std::size_t i = 0; i < kQuantiles.size(); ++i) {
    const double place = kQuantiles[i] * static_cast<double>(rows - 1);
    const auto below = static_cast<std::int64_t>(place);
    const std::int64_t above = std::min(below + 1, rows - 1);
    const double share = place - static_cast<double>(below);
    summary.quantiles[i] = value[below] * (1 - share) + value[above] * share;
  }
  summary.histogram = histogram_of(sorted, summary.least, summary.greatest);
  return summary;
}

std::vector<ValueCount> frequent_of(const DescribedColumn& column, const at::Tensor& codes) {
  const at::Tensor counts = at::bincount(codes, {}, static_cast<std::int64_t>(column.names.size()));
  const auto [rows, order] = at::sort(counts, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  std::vector<ValueCount> frequent;
  for (std::int64_t i = 0; i < rows.size(0) && frequent.size() < kMostListedValues; ++i) {
    const auto count = rows[i].item<std::int64_t>();
    if (count == 0)
      break;
    const auto code = order[i].item<std::int64_t>();
    frequent.push_back({column.names.at(static_cast<std::size_t>(code)), count});
  }
  return frequent;
}

}  // namespace

ColumnSummary summarize(const DescribedColumn& column) {
  ColumnSummary summary;
  summary.name = column.name;
  summary.kind = column.kind;
  summary.is_date = column.is_date;
  summary.rows = column.values.size(0);
  const at::Tensor values = column.values.masked_select(present(column));
  summary.missing = summary.rows - values.size(0);
  if (values.size(0) == 0)
    return summary;
  summary.distinct = internal::count_distinct(values);
  if (column.has_codes()) {
    summary.frequent = frequent_of(column, values);
  } else {
    summary.numbers = summary_of(values);
  }
  return summary;
}

void to_json(nlohmann::json& json, const ColumnSummary& summary) {
  json = {{"name", summary.name},         {"type", name_of(summary.kind)},
          {"rows", summary.rows},         {"missing", summary.missing},
          {"distinct", summary.distinct}, {"missing_share", summary.missing_share()}};
  if (summary.kind == ColumnKind::kTime)
    json["dates"] = summary.is_date;
  if (const auto& numbers = summary.numbers) {
    json["min"] = numbers->least;
    json["max"] = numbers->greatest;
    json["mean"] = numbers->mean;
    json["std"] = numbers->deviation;
    nlohmann::json quantiles = nlohmann::json::array();
    for (std::size_t i = 0; i < kQuantiles.size(); ++i)
      quantiles.push_back({{"q", kQuantiles[i]}, {"value", numbers->quantiles[i]}});
    json["quantiles"] = std::move(quantiles);
    json["histogram"] = numbers->histogram;
  }
  if (!summary.frequent.empty()) {
    json["values"] = nlohmann::json::array();
    for (const ValueCount& value : summary.frequent) {
      json["values"].push_back(
          {{"name", value.name},
           {"rows", value.rows},
           {"share", static_cast<double>(value.rows) /
                         static_cast<double>(summary.rows - summary.missing)}});
    }
  }
}

void from_json(const nlohmann::json& json, ColumnSummary& summary) {
  summary = {};
  json.at("name").get_to(summary.name);
  summary.kind = internal::named<ColumnKind>(json.at("type"), 4);
  json.at("rows").get_to(summary.rows);
  json.at("missing").get_to(summary.missing);
  json.at("distinct").get_to(summary.distinct);
  summary.is_date = json.value("dates", false);
  if (json.contains("mean")) {
    NumberSummary& numbers = summary.numbers.emplace();
    json.at("min").get_to(numbers.least);
    json.at("max").get_to(numbers.greatest);
    json.at("mean").get_to(numbers.mean);
    json.at("std").get_to(numbers.deviation);
    for (std::size_t i = 0; i < kQuantiles.size(); ++i)
      json.at("quantiles").at(i).at("value").get_to(numbers.quantiles[i]);
    json.at("histogram").get_to(numbers.histogram);
  }
  for (const nlohmann::json& value : json.value("values", nlohmann::json::array()))
    summary.frequent.push_back({value.at("name"), value.at("rows")});
}

}  // namespace treadle::describe
