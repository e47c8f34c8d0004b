#include <treadle/core/training/optimizer.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle {

double Optimizer::learning_rate() const {
  return call_plugin(*this, "learning_rate", [&] { return do_learning_rate(); });
}

std::vector<SlotSpec> Optimizer::slots() const {
  return call_plugin(*this, "slots", [&] { return do_slots(); });
}

void Optimizer::update(ParameterView& view) const {
  call_plugin(*this, "update", [&] { do_update(view); });
}

}  // namespace treadle
