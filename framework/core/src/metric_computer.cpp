#include <treadle/core/metric_computer.h>

#include <c10/core/GradMode.h>

namespace treadle {

void MetricComputer::start(const TargetSpec& target) {
  do_start(target);
  do_reset();
}

void MetricComputer::update(const Predictions& predictions, const Batch& batch) {
  TREADLE_EXPECTS(predictions.values.defined() && batch.original_targets.defined(),
                  "a metric needs predictions and targets");
  TREADLE_EXPECTS(predictions.values.size(0) == batch.original_targets.size(0),
                  "predictions and targets must have the same number of rows");
  const at::NoGradGuard no_gradients;
  do_update(predictions, batch);
}

}  // namespace treadle
