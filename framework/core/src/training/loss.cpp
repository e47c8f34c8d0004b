#include <treadle/core/training/loss.h>

#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle {

std::vector<OutputSpec> Loss::outputs_for(const TargetSpec& target) const {
  return call_plugin(*this, "outputs_for", [&] { return do_outputs_for(target); });
}

LossTerms Loss::forward(const std::vector<at::Tensor>& outputs, const TargetBatch& target) const {
  return call_plugin(*this, "forward", [&] { return do_forward(outputs, target); });
}

at::Tensor Loss::weight(const TargetBatch& target) const {
  const at::NoGradGuard no_gradients;
  return call_plugin(*this, "weight", [&] { return do_weight(target); });
}

Prediction Loss::prediction(const std::vector<at::Tensor>& outputs) const {
  return call_plugin(*this, "prediction", [&] { return do_prediction(outputs); });
}

bool Loss::is_additive() const {
  return call_plugin(*this, "is_additive", [&] { return do_is_additive(); });
}

at::Tensor Loss::do_weight(const TargetBatch& target) const {
  if (target.weights().defined())
    return target.weights().sum();
  const at::Tensor& values = target.values();
  const bool is_float = at::isFloatingType(values.scalar_type());
  return at::scalar_tensor(static_cast<double>(target.positions()),
                           values.options().dtype(is_float ? values.scalar_type() : at::kFloat));
}

}  // namespace treadle
