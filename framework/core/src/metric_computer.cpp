#include <treadle/core/metric_computer.h>

#include <c10/core/GradMode.h>

#include <treadle/core/plugin_call.h>

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

void MetricComputer::update(const Predictions& predictions, const Batch& batch) {
  TREADLE_EXPECTS(predictions.values.defined() && batch.original_targets.defined(),
                  "a metric needs predictions and targets");
  TREADLE_EXPECTS(predictions.values.size(0) == batch.original_targets.size(0),
                  "predictions and targets must have the same number of rows");
  const at::NoGradGuard no_gradients;
  call_plugin(*this, "update", [&] { do_update(predictions, batch); });
}

}  // namespace treadle
