#include <treadle/core/components/module_state.h>

#include <set>

#include <torch/nn/module.h>

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

StateDict module_state(const torch::nn::Module& module) {
  StateDict state;
  for (const auto& item : module.named_parameters())
    state.put(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers())
    state.put(item.key(), item.value().detach());
  return state;
}

}  // namespace treadle
