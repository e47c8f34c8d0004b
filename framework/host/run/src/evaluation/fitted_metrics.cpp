#include "evaluation/fitted_metrics.h"

#include <algorithm>
#include <string>
#include <utility>

#include <treadle/core/components/plugin_call.h>
#include <treadle/core/data/abilities/fits_training_rows.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/validation/set_aside.h>

namespace treadle::internal {
namespace {

constexpr const char* kMetrics = "metrics";

}  // namespace

void FittedMetrics::fit(std::span<const Metric> metrics, const EvaluatedRows& data,
                        const RowList& rows) {
  states_.assign(metrics.size(), {});
  RowList touched;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const MetricComputer& metric = *metrics[i].computer;
    const auto* const fits = metric.ask<FitsTrainingRows>();
    if (fits == nullptr)
      continue;
    if (touched.empty()) {
      const SampleReader* const samples = data.rows->samples();
      touched =
          samples != nullptr ? touched_rows(*samples, rows) : rows_of_both(rows, {});  // ascending
    }
    states_[i] = call_plugin(metric, "fit",
                             [&] { return fits->fit(*data.source, touched, metrics[i].target); });
  }
}

void FittedMetrics::use_in(MetricComputer& metric, std::size_t index,
                           const at::Tensor& groups) const {
  auto* const fits = metric.ask<FitsTrainingRows>();
  if (fits != nullptr && index < states_.size())
    call_plugin(metric, "use", [&] { fits->use(states_[index], groups); });
}

void FittedMetrics::use_in(std::span<const Metric> metrics, const at::Tensor& groups) const {
  for (std::size_t i = 0; i < metrics.size(); ++i)
    use_in(*metrics[i].computer, i, groups);
}

void FittedMetrics::save_in(StateDict& preprocessing) const {
  StateDict saved;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].empty())
      saved.put(std::to_string(i), states_[i]);
  }
  if (!saved.empty())
    preprocessing.put(kMetrics, std::move(saved));
}

void FittedMetrics::load_from(const StateDict& preprocessing) {
  states_.clear();
  if (!preprocessing.has_part(kMetrics))
    return;
  for (const auto& [key, state] : preprocessing.part(kMetrics).parts()) {
    const std::size_t index = std::stoul(key);
    states_.resize(std::max(states_.size(), index + 1));
    states_[index] = state;
  }
}

}  // namespace treadle::internal
