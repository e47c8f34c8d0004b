#include "result/data_facts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

#include <treadle/core/data/transform.h>

namespace treadle::internal {
namespace {

using Json = nlohmann::json;

/// Columns and numbers of a target that are described one by one, at most.
constexpr std::int64_t kMostDescribed = 200;

bool may_have_missing(const PortSpec& port) {
  return std::any_of(port.columns.begin(), port.columns.end(),
                     [](const Column& column) { return column.may_be_missing; });
}

/// Missing values of each column, by port; empty where no column may have any.
std::vector<std::vector<std::int64_t>> missing_values(const RowReader& rows) {
  const std::vector<PortSpec>& ports = rows.spec().inputs;
  std::vector<std::vector<std::int64_t>> missing(ports.size());
  if (std::none_of(ports.begin(), ports.end(), may_have_missing))
    return missing;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (may_have_missing(ports[i]))
      missing[i].resize(ports[i].columns.size());
  }
  for_each_chunk(rows, RowList::range(0, rows.rows()), [&](const Batch& batch) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (missing[i].empty())
        continue;
      const at::Tensor is_missing =
          ports[i].role == Role::kCategories ? batch.inputs[i].lt(0) : at::isnan(batch.inputs[i]);
      const at::Tensor counted = is_missing.sum(0).contiguous();
      const auto* const more = counted.data_ptr<std::int64_t>();
      for (std::size_t column = 0; column < missing[i].size(); ++column)
        missing[i][column] += more[column];
    }
  });
  return missing;
}

Json column_facts(const Column& column, std::int64_t missing) {
  Json facts{{"name", column.name}, {"type", column.categories.empty() ? "number" : "category"}};
  if (!column.categories.empty())
    facts["categories"] = column.categories.size();
  if (column.may_be_missing)
    facts["missing"] = missing;
  return facts;
}

Json input_facts(const RowReader& rows) {
  const std::vector<std::vector<std::int64_t>> missing = missing_values(rows);
  Json inputs = Json::array();
  for (std::size_t i = 0; i < rows.spec().inputs.size(); ++i) {
    const PortSpec& port = rows.spec().inputs[i];
    Json columns = Json::array();
    const std::size_t described =
        std::min(port.columns.size(), static_cast<std::size_t>(kMostDescribed));
    for (std::size_t k = 0; k < described; ++k)
      columns.push_back(column_facts(port.columns[k], missing[i].empty() ? 0 : missing[i][k]));
    inputs.push_back({{"name", port.name}, {"shape", port.shape}, {"columns", std::move(columns)}});
  }
  return inputs;
}

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json class_facts(const TargetSpec& target, const at::Tensor& targets) {
  const at::Tensor counted = at::bincount(targets, {}, target.class_count()).contiguous();
  const auto* const rows = counted.data_ptr<std::int64_t>();
  Json classes = Json::array();
  for (std::size_t i = 0; i < target.class_names.size(); ++i)
    classes.push_back({{"name", target.class_names[i]}, {"rows", rows[i]}});
  return classes;
}

/// Of each column, in double. In blocks: torch converts what it is to add up.
at::Tensor mean_of(const at::Tensor& numbers) {
  constexpr std::int64_t kBlock = std::int64_t{1} << 18;
  const std::int64_t rows = numbers.size(0);
  if (rows <= kBlock)
    return at::mean(numbers, {0}, /*keepdim=*/false, at::kDouble);
  at::Tensor sum;
  for (std::int64_t begin = 0; begin < rows; begin += kBlock) {
    const at::Tensor block = numbers.narrow(0, begin, std::min(kBlock, rows - begin))
                                 .sum({0}, /*keepdim=*/false, at::kDouble);
    sum = sum.defined() ? sum.add_(block) : block;
  }
  return sum.div_(rows);
}

Json number_facts(const at::Tensor& targets) {
  // A view: the targets may be larger than what memory is left.
  const at::Tensor numbers = targets.slice(1, 0, std::min(targets.size(1), kMostDescribed));
  const at::Tensor low = at::amin(numbers, {0}).to(at::kDouble);
  const at::Tensor mean = mean_of(numbers);
  const at::Tensor high = at::amax(numbers, {0}).to(at::kDouble);
  Json facts = Json::array();
  for (std::int64_t i = 0; i < numbers.size(1); ++i) {
    facts.push_back({{"smallest", finite(low.data_ptr<double>()[i])},
                     {"mean", finite(mean.data_ptr<double>()[i])},
                     {"largest", finite(high.data_ptr<double>()[i])}});
  }
  return facts;
}

/// A target's values at positions that count: of classes [n], of others [n, width].
at::Tensor real_values(const RowReader& rows, std::size_t index) {
  const TargetSpec& target = rows.spec().targets[index];
  const at::Tensor values = rows.targets(index);
  const bool is_classes = target.kind == TargetKind::kClasses;
  const at::Tensor flat = is_classes ? values.flatten() : values.reshape({-1, target.width()});
  const at::Tensor weights = rows.position_weights(index);
  at::Tensor counts = weights.defined() ? weights.gt(0) : weights;
  if (!target.padded_like.empty()) {
    const at::Tensor lengths = rows.lengths(rows.spec().input_index(target.padded_like));
    at::Tensor real = at::arange(values.size(1)).unsqueeze(0).lt(lengths.unsqueeze(1));
    for (std::size_t more = 1; more < target.position_dimensions(); ++more)
      real = real.unsqueeze(-1);
    real = real.expand(values.sizes().slice(0, target.position_dimensions() + 1));
    counts = counts.defined() ? counts.logical_and(real) : real;
  }
  return counts.defined() ? flat.index_select(0, counts.flatten().nonzero().squeeze(1)) : flat;
}

Json target_facts(const RowReader& all, std::size_t index) {
  // Of samples that overlap, each row once.
  const SampleReader* const samples = all.samples();
  const RowReader* const steps = samples != nullptr ? samples->steps() : nullptr;
  const RowReader& rows = steps != nullptr ? *steps : all;
  const TargetSpec& target = rows.spec().targets[index];
  Json facts{{"name", target.name}, {"kind", name_of(target.kind)}};
  const at::Tensor values = real_values(rows, index);
  if (values.size(0) == 0)
    return facts;
  if (target.kind == TargetKind::kClasses) {
    facts["classes"] = class_facts(target, values);
  } else {
    facts["numbers"] = number_facts(values);
  }
  return facts;
}

Json all_target_facts(const RowReader& rows) {
  Json targets = Json::array();
  for (std::size_t i = 0; i < rows.spec().targets.size(); ++i)
    targets.push_back(target_facts(rows, i));
  return targets;
}

}  // namespace

Json data_facts(const Dataset& dataset) {
  const RowReader& rows = dataset.rows();
  Json facts{
      {"rows", rows.rows()}, {"inputs", input_facts(rows)}, {"targets", all_target_facts(rows)}};
  if (dataset.is_stream()) {
    const std::int64_t all = dataset.row_count();
    facts["described_rows"] = rows.rows();  // the first ones
    facts["rows"] = all == DataProvider::kEndless ? Json() : Json(all);
  }
  return facts;
}

}  // namespace treadle::internal
