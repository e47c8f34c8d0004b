#include <treadle/core/weights.h>

#include <algorithm>
#include <array>
#include <utility>

#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include <treadle/base/error.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/module_state.h>
#include <treadle/tensor/safetensors.h>

namespace treadle {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.sizes())
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

struct TypeName {
  c10::ScalarType type;
  const char* name;
};
constexpr std::array kTypes{TypeName{at::kDouble, "float64"},    TypeName{at::kFloat, "float32"},
                            TypeName{at::kBFloat16, "bfloat16"}, TypeName{at::kHalf, "float16"},
                            TypeName{at::kLong, "int64"},        TypeName{at::kInt, "int32"},
                            TypeName{at::kShort, "int16"},       TypeName{at::kChar, "int8"},
                            TypeName{at::kByte, "uint8"},        TypeName{at::kBool, "bool"}};

std::string type_text(const at::Tensor& tensor) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == tensor.scalar_type())
      return entry.name;
  }
  return c10::toString(tensor.scalar_type());
}

bool is_convertible(c10::ScalarType from, c10::ScalarType to) {
  return from == to || (c10::isFloatingType(from) && c10::isFloatingType(to));
}

/// Whether the tensor is saved under another of its names.
bool is_saved_elsewhere(const at::Tensor& tensor, const NamedTensors& own,
                        const NamedTensors& saved) {
  return std::any_of(own.begin(), own.end(), [&](const auto& other) {
    return tensor.numel() > 0 && other.second.data_ptr() == tensor.data_ptr() &&
           other.second.sizes() == tensor.sizes() && other.second.strides() == tensor.strides() &&
           saved.count(other.first) > 0;
  });
}

std::string joined(const std::string& title, const std::vector<std::string>& words) {
  if (words.empty())
    return "";
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : ", ") + word;
  return title + ": " + text + "; ";
}

std::vector<std::string> spoken(const std::vector<WeightsDifference::Misfit>& misfits) {
  std::vector<std::string> words;
  for (const WeightsDifference::Misfit& misfit : misfits)
    words.push_back(misfit.name + " (expected " + misfit.expected + ", got " + misfit.got + ")");
  return words;
}

[[noreturn]] void refuse(const WeightsDifference& difference) {
  throw StorageError("saved weights do not fit the model; " + difference.text());
}

/// Says whose file it is.
template <typename Work>
auto of_file(const std::filesystem::path& file, Work&& work) {
  const NamedTensors saved = read_safetensors(file).tensors;
  try {
    return std::forward<Work>(work)(saved);
  } catch (const StorageError& error) {
    throw StorageError(file.string() + ": " + error.what());
  }
}

}  // namespace

bool WeightsDifference::empty() const {
  return missing.empty() && unexpected.empty() && of_other_shape.empty() && of_other_type.empty();
}

std::string WeightsDifference::text() const {
  std::vector<std::string> strangers;
  for (const std::string& name : unexpected) {
    std::string meant = did_you_mean(name, missing);
    if (!meant.empty())
      meant = " (" + meant.substr(2) + ")";  // "; did you mean …?"
    strangers.push_back(name + meant);
  }
  std::string text = joined("missing", missing) + joined("unexpected", strangers) +
                     joined("of another shape", spoken(of_other_shape)) +
                     joined("of another type", spoken(of_other_type));
  if (!text.empty())
    text.resize(text.size() - 2);
  return text;
}

WeightsDifference compare_weights(const torch::nn::Module& module, const NamedTensors& saved) {
  const StateDict own = module_state(module);
  WeightsDifference difference;
  for (const auto& [name, tensor] : own.tensors()) {
    const auto found = saved.find(name);
    if (found == saved.end()) {
      if (!is_saved_elsewhere(tensor, own.tensors(), saved))
        difference.missing.push_back(name);
    } else if (found->second.sizes() != tensor.sizes()) {
      difference.of_other_shape.push_back({name, shape_text(tensor), shape_text(found->second)});
    } else if (!is_convertible(found->second.scalar_type(), tensor.scalar_type())) {
      difference.of_other_type.push_back({name, type_text(tensor), type_text(found->second)});
    }
  }
  for (const auto& [name, tensor] : saved) {
    if (!own.has_tensor(name))
      difference.unexpected.push_back(name);
  }
  return difference;
}

void load_weights(torch::nn::Module& module, const NamedTensors& saved) {
  const WeightsDifference difference = compare_weights(module, saved);
  if (!difference.empty())
    refuse(difference);
  load_matching_weights(module, saved);
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& file) {
  of_file(file, [&](const NamedTensors& saved) { load_weights(module, saved); });
}

WeightsDifference load_matching_weights(torch::nn::Module& module, const NamedTensors& saved) {
  const at::NoGradGuard no_gradients;
  const StateDict own = module_state(module);
  for (const auto& [name, tensor] : own.tensors()) {
    const auto found = saved.find(name);
    const bool fits = found != saved.end() && found->second.sizes() == tensor.sizes() &&
                      is_convertible(found->second.scalar_type(), tensor.scalar_type());
    if (fits)
      tensor.copy_(found->second);
  }
  return compare_weights(module, saved);
}

WeightsDifference load_matching_weights(torch::nn::Module& module,
                                        const std::filesystem::path& file) {
  return of_file(file,
                 [&](const NamedTensors& saved) { return load_matching_weights(module, saved); });
}

void save_weights(const torch::nn::Module& module, const std::filesystem::path& file,
                  std::map<std::string, std::string> metadata) {
  write_safetensors(file, {module_state(module).tensors(), std::move(metadata)});
}

}  // namespace treadle
