#include <treadle/core/validation/output_stage.h>

#include <utility>

#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {

void OutputStage::start(const TargetSpec& target) {
  call_plugin(*this, "start", [&] { do_start(target); });
}

void OutputStage::expect_enough(const TargetBatch& target) const {
  call_plugin(*this, "expect_enough", [&] { do_expect_enough(target); });
}

void OutputStage::fit(const Prediction& prediction, const TargetBatch& target) {
  TREADLE_EXPECTS(prediction.values.defined(), "an output stage needs predictions");
  TREADLE_EXPECTS(prediction.values.size(0) == target.rows(),
                  "predictions and targets must have the same number of rows");
  const at::NoGradGuard no_gradients;
  call_plugin(*this, "fit", [&] { do_fit(prediction, target); });
}

Prediction OutputStage::apply(Prediction prediction, const Batch& rows) const {
  TREADLE_EXPECTS(prediction.values.defined(), "an output stage needs predictions");
  const at::NoGradGuard no_gradients;
  return call_plugin(*this, "apply", [&] { return do_apply(std::move(prediction), rows); });
}

bool OutputStage::needs_groups() const {
  return call_plugin(*this, "needs_groups", [&] { return do_needs_groups(); });
}

bool OutputStage::needs_folds() const {
  return call_plugin(*this, "needs_folds", [&] { return do_needs_folds(); });
}

std::vector<MetricValue> OutputStage::learned() const {
  return call_plugin(*this, "learned", [&] { return do_learned(); });
}

}  // namespace treadle
