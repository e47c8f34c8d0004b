#include "restore_best_weights.h"

namespace treadle::callbacks {

RestoreBestWeights::RestoreBestWeights(const Config& config) : monitor_(config) {}

void RestoreBestWeights::do_begin(TrainingControl& control) {
  is_active_ = monitor_.begin(control);
  if (is_active_)
    control.end_with_kept_weights(monitor_.name());
}

void RestoreBestWeights::do_after_epoch(const EpochSummary& epoch, TrainingControl& control) {
  if (!is_active_)
    return;
  const std::optional<MetricValue> value = monitor_.value(epoch);
  if (value && best_.offer(*value))
    control.keep_weights();
}

}  // namespace treadle::callbacks
