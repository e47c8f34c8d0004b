#include <treadle/core/validation/prediction_state.h>

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

namespace treadle {
namespace {

std::string numbered(const char* name, std::size_t place) {
  return name + ("-" + std::to_string(place));
}

void put_defined(StateDict& state, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined())
    state.put(name, tensor);
}

at::Tensor tensor_or_undefined(const StateDict& state, const std::string& name) {
  return state.has_tensor(name) ? state.tensor(name) : at::Tensor();
}

}  // namespace

StateDict state_of(const Prediction& prediction) {
  StateDict state;
  state.put("kind", nlohmann::json(static_cast<int>(prediction.kind)));
  put_defined(state, "values", prediction.values);
  put_defined(state, "logits", prediction.logits);
  put_defined(state, "decision", prediction.decision);
  put_defined(state, "crossed", prediction.crossed);
  put_defined(state, "samples", prediction.samples);
  nlohmann::json names = nlohmann::json::array();
  for (const Prediction::Extra& extra : prediction.extras) {
    put_defined(state, numbered("extra", names.size()), extra.values);
    state.put_number(numbered("level", names.size()), extra.level);
    names.push_back(extra.name);
  }
  state.put("extras", std::move(names));
  return state;
}

Prediction prediction_from(const StateDict& state) {
  Prediction prediction;
  prediction.kind = static_cast<TargetKind>(state.value("kind").get<int>());
  prediction.values = tensor_or_undefined(state, "values");
  prediction.logits = tensor_or_undefined(state, "logits");
  prediction.decision = tensor_or_undefined(state, "decision");
  prediction.crossed = tensor_or_undefined(state, "crossed");
  prediction.samples = tensor_or_undefined(state, "samples");
  for (const nlohmann::json& name : state.value("extras")) {
    const std::size_t place = prediction.extras.size();
    prediction.extras.push_back({name.get<std::string>(),
                                 tensor_or_undefined(state, numbered("extra", place)),
                                 state.number(numbered("level", place))});
  }
  return prediction;
}

}  // namespace treadle
