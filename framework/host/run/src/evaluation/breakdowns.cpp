#include "evaluation/breakdowns.h"

#include "evaluation/forecast_sample.h"
#include "evaluation/metric_breakdown.h"
#include "evaluation/picture_sample.h"

namespace treadle::internal {

void ready_breakdowns(std::span<const Metric> metrics, const FittedMetrics& fitted,
                      const EvaluatedRows& data, const RowList& rows) {
  for (const Metric& metric : metrics) {
    if (auto* const parts = dynamic_cast<MetricBreakdown*>(metric.computer.get()))
      parts->use(fitted, data.rows->groups());
    if (auto* const sample = dynamic_cast<ForecastSample*>(metric.computer.get()))
      sample->choose_of(rows);
    if (auto* const sample = dynamic_cast<PictureSample*>(metric.computer.get()))
      sample->choose_of(rows);
  }
}

}  // namespace treadle::internal
