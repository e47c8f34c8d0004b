#pragma once

#include <treadle/base/config.h>
#include <treadle/core/training/training_callback.h>

namespace treadle::callbacks {

/// Puts the mean L2 norm of all gradients before clipping into the history, as "gradient_norm".
class LogGradientNorm final : public TrainingCallback {
 public:
  explicit LogGradientNorm(const Config&) {}

 private:
  std::vector<std::string> do_log_names() const override { return {"gradient_norm"}; }
  void do_begin(TrainingControl& control) override { control.log_gradient_norm(); }
};

}  // namespace treadle::callbacks
