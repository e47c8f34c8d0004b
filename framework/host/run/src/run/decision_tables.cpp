#include "run/decision_tables.h"

#include <algorithm>
#include <array>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/validation/metric_computer.h>

#include "components/target_defaults.h"
#include "result/fit_results.h"
#include "result/json_path.h"

namespace treadle::internal {
namespace {

constexpr std::array kMetrics{"curves", "reliability", "score_histogram", "thresholds"};
constexpr std::int64_t kMostClasses = 20;

nlohmann::json parameters_of(const std::string& metric, const nlohmann::json& document) {
  const nlohmann::json& cost = at_path(document, {"outputs", "decision", "threshold", "cost"});
  return metric == "thresholds" && cost.is_object() ? nlohmann::json{{"costs", cost}}
                                                    : nlohmann::json::object();
}

}  // namespace

std::vector<ResultTable> decision_tables(const DocumentComponents& components,
                                         const KeptPredictions& kept) {
  const PluginRegistry& registry = components.runtime().registry();
  const std::vector<std::string> known = registry.names<MetricComputer>();
  const std::vector<TargetSpec>& targets = components.data_spec().targets;
  std::vector<MetricTable> tables;
  for (std::size_t target = 0; target < targets.size(); ++target) {
    const TargetSpec& spec = targets[target];
    if (spec.kind != TargetKind::kClasses || spec.position_dimensions() > 0 ||
        spec.class_count() > kMostClasses)
      continue;
    for (const char* const name : kMetrics) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        continue;
      const auto metric = registry.make<MetricComputer>(
          name, Config(parameters_of(name, components.workflow().resolved)));
      try {
        metric->start(spec);
      } catch (const DataError&) {
        continue;  // a table for two classes
      }
      const TargetMetric view{metric.get(), target, spec, metric_prefix(targets, spec)};
      view.update(kept.predictions, kept.rows);
      for (MetricTable& table : view.compute().tables)
        tables.push_back(std::move(table));
    }
  }
  return result_tables(tables);
}

}  // namespace treadle::internal
