#include "evaluation/metric_breakdown.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>

namespace treadle::internal {

MetricBreakdown::MetricBreakdown(std::string table, std::size_t target, Make make)
    : table_(std::move(table)), target_(target), make_(std::move(make)) {}

MetricBreakdown::~MetricBreakdown() = default;

void MetricBreakdown::use(const FittedMetrics& fitted, const at::Tensor& groups) {
  fitted_ = &fitted;
  groups_ = groups;
  for (auto& [part, metrics] : parts_) {
    for (const Made& made : metrics)
      fitted.use_in(*made.metric, made.index, groups);
  }
}

MetricBreakdown::Part MetricBreakdown::changed(
    std::int64_t number, const Prediction& prediction, const TargetBatch& target, std::size_t index,
    const std::function<at::Tensor(const at::Tensor&)>& of_positions,
    const std::function<at::Tensor(const at::Tensor&)>& of_rows) {
  const Batch& whole = target.batch();
  Part part{number, prediction, {}};
  part.prediction.samples = at::Tensor();
  for_each_tensor(part.prediction, [&](at::Tensor& tensor, std::int64_t /*rows*/) {
    tensor = of_positions(tensor);
  });
  part.batch.targets = part.batch.original_targets = {of_positions(target.values())};
  if (index < whole.position_weights.size() && whole.position_weights[index].defined())
    part.batch.position_weights = {of_positions(whole.position_weights[index])};
  if (whole.weights.defined())
    part.batch.weights = of_rows(whole.weights);
  part.batch.rows = of_rows(whole.rows);
  return part;
}

std::vector<MetricBreakdown::Made>& MetricBreakdown::metrics_of(std::int64_t part) {
  const auto [found, is_new] = parts_.try_emplace(part);
  if (is_new) {
    found->second = make_(part_spec_);
    for (const Made& made : found->second) {
      made.metric->reset();
      if (fitted_ != nullptr)
        fitted_->use_in(*made.metric, made.index, groups_);
    }
  }
  return found->second;
}

void MetricBreakdown::do_start(const TargetSpec& target) {
  part_spec_ = part_of(target);
}

void MetricBreakdown::do_reset() {
  parts_.clear();
}

void MetricBreakdown::do_update(const Prediction& prediction, const TargetBatch& target) {
  split(prediction, target, [&](const Part& part) {
    const TargetBatch of_part = TargetBatch::original(part.batch, 0, part_spec_);
    for (const Made& made : metrics_of(part.number))
      made.metric->update(part.prediction, of_part);
  });
}

void MetricBreakdown::do_merge(const MetricComputer& other) {
  for (const auto& [part, theirs] : static_cast<const MetricBreakdown&>(other).parts_) {
    const std::vector<Made>& ours = metrics_of(part);
    for (std::size_t i = 0; i < ours.size() && i < theirs.size(); ++i)
      ours[i].metric->merge(*theirs[i].metric);
  }
}

MetricResult MetricBreakdown::do_compute() const {
  MetricTable table;
  table.name = table_;
  std::vector<double> values;
  for (const auto& [part, metrics] : parts_) {
    table.row_labels.push_back(label_of(part));
    const bool is_first = table.row_labels.size() == 1;
    for (const Made& made : metrics) {
      for (const MetricValue& value : made.metric->compute().values) {
        if (is_first)
          table.column_labels.push_back(value.name);
        values.push_back(value.value);
      }
    }
  }
  if (table.column_labels.empty())
    return {};
  table.values = at::tensor(values, at::kDouble)
                     .reshape({static_cast<std::int64_t>(table.row_labels.size()),
                               static_cast<std::int64_t>(table.column_labels.size())});
  return {{}, {std::move(table)}};
}

StateDict MetricBreakdown::do_state() const {
  StateDict state;
  for (const auto& [part, metrics] : parts_) {
    StateDict of_part;
    for (std::size_t i = 0; i < metrics.size(); ++i)
      of_part.put(std::to_string(i), metrics[i].metric->state());
    state.put(std::to_string(part), std::move(of_part));
  }
  return state;
}

void MetricBreakdown::do_load_state(const StateDict& state) {
  parts_.clear();
  for (const auto& [name, stored] : state.parts()) {
    std::vector<Made>& metrics = metrics_of(std::stoll(name));
    for (std::size_t i = 0; i < metrics.size(); ++i)
      metrics[i].metric->load_state(stored.part(std::to_string(i)));
  }
}

TargetSpec MetricsByStep::part_of(const TargetSpec& target) const {
  TargetSpec step = target;
  step.shape.erase(step.shape.begin());
  return step;
}

void MetricsByStep::split(const Prediction& prediction, const TargetBatch& target,
                          const std::function<void(const Part&)>& visit) const {
  const std::int64_t steps = prediction.values.size(1);
  for (std::int64_t step = 0; step < steps; ++step) {
    visit(changed(
        step, prediction, target, this->target(),
        [&](const at::Tensor& positions) { return positions.select(1, step); },
        [](const at::Tensor& rows) { return rows; }));
  }
}

void MetricsBySeries::split(const Prediction& prediction, const TargetBatch& target,
                            const std::function<void(const Part&)>& visit) const {
  TREADLE_EXPECTS(groups().defined(), "metrics by series need the groups of the rows");
  const at::Tensor of_rows = groups().index_select(0, target.batch().rows).contiguous();
  const auto* const group = of_rows.data_ptr<std::int64_t>();
  std::map<std::int64_t, std::vector<std::int64_t>> rows;
  for (std::int64_t i = 0; i < of_rows.numel(); ++i)
    rows[group[i]].push_back(i);
  for (const auto& [number, places] : rows) {
    const at::Tensor index = at::tensor(places, at::kLong);
    const auto select = [&](const at::Tensor& all) { return all.index_select(0, index); };
    visit(changed(number, prediction, target, this->target(), select, select));
  }
}

std::string MetricsBySeries::label_of(std::int64_t part) const {
  return names_ != nullptr ? names_->name_of(part) : std::to_string(part);
}

}  // namespace treadle::internal
