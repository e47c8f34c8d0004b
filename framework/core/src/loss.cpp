#include <treadle/core/loss.h>

#include <treadle/core/plugin_call.h>

namespace treadle {

std::vector<OutputSpec> Loss::outputs_for(const TargetSpec& target) const {
  return call_plugin(*this, "outputs_for", [&] { return do_outputs_for(target); });
}

LossTerms Loss::forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const {
  return call_plugin(*this, "forward", [&] { return do_forward(outputs, batch); });
}

Predictions Loss::predictions(const std::vector<at::Tensor>& outputs) const {
  return call_plugin(*this, "predictions", [&] { return do_predictions(outputs); });
}

}  // namespace treadle
