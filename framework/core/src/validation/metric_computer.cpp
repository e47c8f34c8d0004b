#include <treadle/core/validation/metric_computer.h>

#include <c10/core/GradMode.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle {

void MetricComputer::start(const TargetSpec& target) {
  call_plugin(*this, "start", [&] { do_start(target); });
  reset();
}

void MetricComputer::reset() {
  call_plugin(*this, "reset", [&] { do_reset(); });
}

void MetricComputer::merge(const MetricComputer& other) {
  call_plugin(*this, "merge", [&] { do_merge(other); });
}

MetricResult MetricComputer::compute() const {
  return call_plugin(*this, "compute", [&] { return do_compute(); });
}

void MetricComputer::update(const Prediction& prediction, const TargetBatch& target) {
  TREADLE_EXPECTS(prediction.values.defined(), "a metric needs predictions");
  TREADLE_EXPECTS(prediction.values.size(0) == target.rows(),
                  "predictions and targets must have the same number of rows");
  const at::NoGradGuard no_gradients;
  call_plugin(*this, "update", [&] { do_update(prediction, target); });
}

void TargetMetric::update(const Predictions& predictions, const Batch& batch) const {
  metric->update(predictions.at(target), TargetBatch::original(batch, target, spec));
}

MetricResult TargetMetric::compute() const {
  MetricResult result = metric->compute();
  for (MetricValue& value : result.values)
    value.name = prefix + value.name;
  for (MetricTable& table : result.tables)
    table.name = prefix + table.name;
  return result;
}

}  // namespace treadle
