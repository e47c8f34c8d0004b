#include <treadle/core/module_state.h>

#include <set>
#include <sstream>

#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

std::map<std::string, at::Tensor, std::less<>> named_tensors(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor, std::less<>> tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value());
  return tensors;
}

std::string shape_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

std::string joined(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = std::string("; ") + title + ":";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? " " : ", ") + names[i];
  return text;
}

}  // namespace

StateDict module_state(const torch::nn::Module& module) {
  StateDict state;
  for (auto& [name, tensor] : named_tensors(module)) state.put(name, tensor.detach());
  return state;
}

void load_module_state(torch::nn::Module& module, const StateDict& state) {
  auto tensors = named_tensors(module);
  std::vector<std::string> missing;
  std::vector<std::string> mis_shaped;
  std::vector<std::string> unexpected;
  for (const auto& [name, tensor] : tensors) {
    if (!state.has_tensor(name)) {
      missing.push_back(name);
    } else if (state.tensor(name).sizes() != tensor.sizes()) {
      mis_shaped.push_back(name + " (the model has " + shape_text(tensor) + ", the file " +
                           shape_text(state.tensor(name)) + ")");
    }
  }
  for (const auto& [name, tensor] : state.tensors()) {
    if (!tensors.contains(name)) unexpected.push_back(name);
  }
  if (!missing.empty() || !mis_shaped.empty() || !unexpected.empty()) {
    throw StorageError("saved weights do not fit the model" + joined("missing", missing) +
                       joined("unexpected", unexpected) + joined("of another shape", mis_shaped));
  }
  const at::NoGradGuard no_gradients;
  for (auto& [name, tensor] : tensors) tensor.copy_(state.tensor(name));
}

}  // namespace treadle
