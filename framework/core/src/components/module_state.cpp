#include <treadle/core/components/module_state.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <treadle/core/components/extra_state.h>

namespace treadle {

std::vector<at::Tensor> distinct_parameters(const torch::nn::Module& module) {
  std::vector<at::Tensor> distinct;
  std::set<const void*> seen;
  for (const at::Tensor& parameter : module.parameters()) {
    if (seen.insert(parameter.unsafeGetTensorImpl()).second)
      distinct.push_back(parameter);
  }
  return distinct;
}

std::vector<std::string> distinct_parameter_names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  std::set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second)
      names.push_back(item.key());
  }
  return names;
}

std::vector<std::pair<std::string, ExtraState*>> extra_states(const torch::nn::Module& module) {
  constexpr const char* kName = "_extra_state";
  std::vector<std::pair<std::string, ExtraState*>> states;
  // A module on the stack is no part of its own list.
  if (auto* const state = dynamic_cast<ExtraState*>(const_cast<torch::nn::Module*>(&module)))
    states.emplace_back(kName, state);
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    if (auto* const state = dynamic_cast<ExtraState*>(item.value().get()))
      states.emplace_back(item.key() + "." + kName, state);
  }
  return states;
}

StateDict module_state(const torch::nn::Module& module) {
  StateDict state;
  for (const auto& item : module.named_parameters())
    state.put(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers())
    state.put(item.key(), item.value().detach());
  for (const auto& [name, extra] : extra_states(module)) {
    const std::string bytes = extra->extra_state();
    at::Tensor saved = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
    std::copy(bytes.begin(), bytes.end(), saved.data_ptr<std::uint8_t>());
    state.put(name, std::move(saved));
  }
  return state;
}

}  // namespace treadle
