#include "state_tree.h"

#include <utility>

namespace treadle::internal {

nlohmann::json take_apart(const StateDict& state, const std::string& prefix,
                          NamedTensors& tensors) {
  nlohmann::json parts = nlohmann::json::object();
  for (const auto& [name, tensor] : state.tensors())
    tensors.emplace(prefix + name, tensor);
  for (const auto& [name, part] : state.parts()) {
    parts[name] = take_apart(part, prefix + name + "/", tensors);
  }
  return {{"version", state.version()}, {"values", state.values()}, {"parts", std::move(parts)}};
}

StateDict put_together(const nlohmann::json& structure) {
  StateDict state(structure.at("version").get<int>());
  for (const auto& [name, value] : structure.at("values").items())
    state.put(name, value);
  for (const auto& [name, part] : structure.at("parts").items())
    state.put(name, put_together(part));
  return state;
}

void put_at(StateDict& state, std::string_view path, const at::Tensor& tensor) {
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) {
    state.put(path, tensor);
    return;
  }
  const std::string_view part_name = path.substr(0, slash);
  StateDict part = state.has_part(part_name) ? state.part(part_name) : StateDict();
  put_at(part, path.substr(slash + 1), tensor);
  state.put(part_name, std::move(part));
}

}  // namespace treadle::internal
