#include "components/document_metrics.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <unordered_set>
#include <utility>

#include "components/target_defaults.h"
#include "document/document_slots.h"
#include "evaluation/collected_predictions.h"
#include "evaluation/forecast_sample.h"
#include "evaluation/metric_breakdown.h"
#include "evaluation/picture_sample.h"

namespace treadle::internal {
namespace {

/// Whether there are at least two groups and at most `most`.
bool has_several_groups(const RowReader& rows, std::size_t most) {
  const at::Tensor groups = rows.groups();
  if (!groups.defined())
    return false;
  const at::Tensor dense = groups.contiguous();
  const auto* const begin = dense.data_ptr<std::int64_t>();
  std::unordered_set<std::int64_t> different;
  // Rows of a group mostly follow one another: millions of them are passed over.
  for (std::int64_t i = 0; i < dense.numel() && different.size() <= most; ++i) {
    if (i == 0 || begin[i] != begin[i - 1])
      different.insert(begin[i]);
  }
  return different.size() > 1 && different.size() <= most;
}

Metric started(const std::vector<TargetSpec>& targets, std::unique_ptr<MetricComputer> metric,
               std::size_t target) {
  const TargetSpec& spec = targets[target];
  metric->start(spec);
  return {std::move(metric), target, spec, metric_prefix(targets, spec)};
}

/// Those a metric is computed for: the one it names, or all it works on.
std::vector<std::size_t> targets_of_metric(const DocumentComponents& components,
                                           const Config& slot) {
  const std::vector<TargetSpec>& targets_of_data = components.data_spec().targets;
  if (slot.has("target") || targets_of_data.size() == 1)
    return {target_of(targets_of_data, slot)};
  const std::vector<TargetKind> kinds =
      target_kinds(components.runtime().registry().describe<MetricComputer>(name_in(slot)).schema);
  std::vector<std::size_t> targets;
  for (std::size_t i = 0; i < targets_of_data.size(); ++i) {
    if (std::find(kinds.begin(), kinds.end(), targets_of_data[i].kind) != kinds.end())
      targets.push_back(i);
  }
  if (targets.empty())
    return {target_of(targets_of_data, slot)};  // the error that names them all
  return targets;
}

std::vector<MetricBreakdown::Made> metrics_of_part(const DocumentComponents& components,
                                                   std::size_t target, const TargetSpec& part) {
  std::vector<MetricBreakdown::Made> made;
  std::size_t index = 0;
  for (const Config& slot : slots_of(components.workflow(), "metrics")) {
    for (const std::size_t of : targets_of_metric(components, slot)) {
      if (of == target) {
        made.push_back({make_in<MetricComputer>(components.runtime(), slot, "metrics"), index});
        made.back().metric->start(part);
      }
      ++index;
    }
  }
  return made;
}

/// Adds a sentence to `left_out` for each that cannot be had.
std::vector<Metric> report_metrics(const DocumentComponents& components,
                                   std::vector<std::string>& left_out) {
  const std::vector<TargetSpec>& targets = components.data_spec().targets;
  std::vector<Metric> metrics;
  const std::vector<std::string> known = components.runtime().registry().names<MetricComputer>();
  for (std::size_t target = 0; target < targets.size(); ++target) {
    const char* const name = defaults_for(targets[target].kind).report_metric;
    if (name == nullptr || std::find(known.begin(), known.end(), name) == known.end())
      continue;
    try {
      metrics.push_back(
          started(targets, components.runtime().registry().make<MetricComputer>(name), target));
    } catch (const DataError& error) {
      // Nobody asked for it: a table of 1500 classes is not to end a training.
      left_out.push_back(std::string("report: without ") + name + " (" + error.what() + ")");
    }
  }
  if (components.dataset().has_rows() && !components.dataset().is_stream()) {
    std::vector<Metric> parts = make_breakdowns(components, components.dataset().evaluated());
    std::move(parts.begin(), parts.end(), std::back_inserter(metrics));
  }
  // Behind all others, so that those have the same places with and without.
  if (components.keeps_predictions()) {
    std::vector<Metric> collecting = make_collecting_metrics(components);
    std::move(collecting.begin(), collecting.end(), std::back_inserter(metrics));
  }
  return metrics;
}

}  // namespace

std::vector<Metric> make_metrics(const DocumentComponents& components) {
  std::vector<Metric> metrics;
  for (const Config& slot : slots_of(components.workflow(), "metrics")) {
    for (const std::size_t target : targets_of_metric(components, slot))
      metrics.push_back(started(components.data_spec().targets,
                                make_in<MetricComputer>(components.runtime(), slot, "metrics"),
                                target));
  }
  return metrics;
}

std::vector<Metric> make_collecting_metrics(const DocumentComponents& components) {
  const std::vector<TargetSpec>& targets = components.data_spec().targets;
  std::vector<Metric> metrics;
  for (std::size_t target = 0; target < targets.size(); ++target)
    metrics.push_back(started(targets, std::make_unique<CollectedPredictions>(), target));
  return metrics;
}

std::vector<Metric> make_report_metrics(const DocumentComponents& components) {
  std::vector<std::string> left_out;
  return report_metrics(components, left_out);
}

std::vector<std::string> missing_report_metrics(const DocumentComponents& components) {
  std::vector<std::string> left_out;
  report_metrics(components, left_out);
  return left_out;
}

std::vector<Metric> make_breakdowns(const DocumentComponents& components,
                                    const EvaluatedRows& data) {
  const std::vector<TargetSpec>& targets = components.data_spec().targets;
  constexpr std::int64_t kMostSteps = 1000;
  std::vector<Metric> metrics;
  const bool has_series = has_several_groups(*data.rows, MetricsBySeries::kMostSeries);
  for (std::size_t target = 0; target < targets.size(); ++target) {
    const TargetSpec& spec = targets[target];
    if (PictureSample::is_for(data.rows->spec(), spec))
      metrics.push_back(started(targets, std::make_unique<PictureSample>(data), target));
    if (spec.kind != TargetKind::kNumbers)
      continue;
    const auto make = [&components, target](const TargetSpec& part) {
      return metrics_of_part(components, target, part);
    };
    const std::vector<std::int64_t> positions = spec.positions();
    if (data.rows->samples() != nullptr && positions.size() == 1 && positions[0] > 1 &&
        positions[0] <= kMostSteps) {
      metrics.push_back(started(targets, std::make_unique<MetricsByStep>(target, make), target));
      metrics.push_back(started(targets, std::make_unique<ForecastSample>(data, target), target));
    }
    if (has_series)
      metrics.push_back(
          started(targets, std::make_unique<MetricsBySeries>(target, make, data.names), target));
  }
  return metrics;
}

}  // namespace treadle::internal
