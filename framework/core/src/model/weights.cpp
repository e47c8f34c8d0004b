#include <treadle/core/model/weights.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include <treadle/base/error.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/components/extra_state.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/quantized_weights.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/tensor/safetensors.h>

#include "components/tensor_words.h"
#include "model/weights_refusal.h"

namespace treadle {
namespace {

bool is_convertible(c10::ScalarType from, c10::ScalarType to) {
  return from == to || (c10::isFloatingType(from) && c10::isFloatingType(to));
}

/// Whether `saved` is int8 in place of the real numbers that `own` has: quantized_weights.h.
bool is_quantized(const at::Tensor& saved, const at::Tensor& own) {
  return saved.scalar_type() == at::kChar && saved.dim() > 0 &&
         c10::isFloatingType(own.scalar_type());
}

/// The bytes of a saved ExtraState, which may be of any length.
bool is_extra_state(const std::string& name) {
  constexpr std::string_view kName = "_extra_state";
  return name == kName || name.ends_with("." + std::string(kName));
}

bool are_bytes(const at::Tensor& saved) {
  return saved.scalar_type() == at::kByte && saved.dim() == 1;
}

/// Throws a StorageError where one of them is none of the module's; the ones before it are loaded.
void load_extra_states(const torch::nn::Module& module, const NamedTensors& saved) {
  for (const auto& [name, state] : extra_states(module)) {
    const auto found = saved.find(name);
    if (found == saved.end() || !are_bytes(found->second))
      continue;
    const at::Tensor bytes = found->second.cpu().contiguous();
    state->load_extra_state({reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>()),
                             static_cast<std::size_t>(bytes.numel())});
  }
}

/// Whether `name` is the scale of a quantised weight, which is no tensor of the module.
bool is_scale(const std::string& name, const StateDict& own, const NamedTensors& saved) {
  const std::string weight = name.substr(0, name.rfind('.'));
  const auto found = saved.find(weight);
  return found != saved.end() && name == scale_name(weight) &&
         found->second.scalar_type() == at::kChar &&
         (!own.has_tensor(weight) || is_quantized(found->second, own.tensor(weight)));
}

/// Whether it is of Float8Scales, which a training finds anew: files with it and without it fit
/// models with it and without it.
bool is_of_float8(const std::string& name) {
  return name.starts_with(std::string(Float8Scales::kName) + ".");
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

/// Numbers that a model cannot be used with. A buffer may be infinite on purpose, as a mask is.
std::optional<WeightsDifference::Misfit> value_misfit(const std::string& name,
                                                      const at::Tensor& saved,
                                                      const at::Tensor& own, bool is_parameter) {
  if (!own.is_floating_point())
    return std::nullopt;
  const at::Tensor finite = saved.isfinite();
  if (is_parameter && !finite.all().item<bool>()) {
    const bool has_nan = saved.isnan().any().item<bool>();
    return WeightsDifference::Misfit{name, "finite numbers", has_nan ? "NaN" : "infinite ones"};
  }
  if (saved.scalar_type() != own.scalar_type() &&
      !at::equal(saved.to(own.scalar_type()).isfinite(), finite)) {
    return WeightsDifference::Misfit{name, "numbers within " + type_text(own.scalar_type()),
                                     "numbers beyond it"};
  }
  return std::nullopt;
}

/// Names of one tensor of the module under which different values are saved.
std::vector<WeightsDifference::Misfit> divided_values(const NamedTensors& own,
                                                      const NamedTensors& saved) {
  std::vector<WeightsDifference::Misfit> misfits;
  std::map<const void*, std::string> names;
  for (const auto& [name, tensor] : own) {
    const auto found = saved.find(name);
    if (tensor.numel() == 0 || found == saved.end())
      continue;
    const auto [first, is_new] = names.emplace(tensor.data_ptr(), name);
    if (is_new || own.at(first->second).sizes() != tensor.sizes() ||
        own.at(first->second).strides() != tensor.strides())
      continue;
    const at::Tensor& other = saved.at(first->second);
    if (other.sizes() == found->second.sizes() &&
        !at::equal(other.to(at::kDouble).nan_to_num(), found->second.to(at::kDouble).nan_to_num()))
      misfits.push_back(
          {name, "the values of " + first->second + ", which is the same tensor", "others"});
  }
  return misfits;
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
  throw StorageError(refusal_of(difference, "the model"));
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
  return missing.empty() && unexpected.empty() && of_other_shape.empty() && of_other_type.empty() &&
         unusable_scales.empty() && unusable_values.empty();
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
                     joined("of another type", spoken(of_other_type)) +
                     joined("unusable scales", spoken(unusable_scales)) +
                     joined("unusable values", spoken(unusable_values));
  if (!text.empty())
    text.resize(text.size() - 2);
  return text;
}

WeightsDifference compare_weights(const torch::nn::Module& module, const NamedTensors& saved) {
  const StateDict own = module_state(module);
  std::set<const void*> parameters;
  for (const at::Tensor& parameter : module.parameters())
    parameters.insert(parameter.data_ptr());
  WeightsDifference difference;
  for (const auto& [name, tensor] : own.tensors()) {
    const auto found = saved.find(name);
    if (found == saved.end()) {
      if (!is_of_float8(name) && !is_saved_elsewhere(tensor, own.tensors(), saved))
        difference.missing.push_back(name);
    } else if (is_extra_state(name)) {
      if (!are_bytes(found->second)) {
        difference.of_other_type.push_back(
            {name, "bytes", type_text(found->second.scalar_type()) + " of another shape"});
      }
    } else if (found->second.sizes() != tensor.sizes()) {
      difference.of_other_shape.push_back(
          {name, shape_text(tensor.sizes()), shape_text(found->second.sizes())});
    } else if (is_quantized(found->second, tensor)) {
      if (std::optional<WeightsDifference::Misfit> misfit = scale_misfit(saved, name))
        difference.unusable_scales.push_back(*std::move(misfit));
    } else if (!is_convertible(found->second.scalar_type(), tensor.scalar_type())) {
      difference.of_other_type.push_back(
          {name, type_text(tensor.scalar_type()), type_text(found->second.scalar_type())});
    } else if (auto misfit = value_misfit(name, found->second, tensor,
                                          parameters.count(tensor.data_ptr()) > 0)) {
      difference.unusable_values.push_back(*std::move(misfit));
    }
  }
  for (WeightsDifference::Misfit& misfit : divided_values(own.tensors(), saved))
    difference.unusable_values.push_back(std::move(misfit));
  for (const auto& [name, tensor] : saved) {
    if (!own.has_tensor(name) && !is_of_float8(name) && !is_scale(name, own, saved))
      difference.unexpected.push_back(name);
  }
  return difference;
}

bool fits_any(const torch::nn::Module& module, const NamedTensors& saved) {
  const NamedTensors own = module_state(module).tensors();
  return own.empty() || std::any_of(own.begin(), own.end(), [&](const auto& one) {
           const auto found = saved.find(one.first);
           if (found != saved.end() && is_extra_state(one.first))
             return are_bytes(found->second);
           return found != saved.end() && found->second.sizes() == one.second.sizes() &&
                  (is_quantized(found->second, one.second) ||
                   is_convertible(found->second.scalar_type(), one.second.scalar_type()));
         });
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
  WeightsDifference difference = compare_weights(module, saved);
  if (difference.is_damage())
    refuse(difference);
  const at::NoGradGuard no_gradients;
  load_extra_states(module, saved);
  const StateDict own = module_state(module);
  for (const auto& [name, tensor] : own.tensors()) {
    const auto found = saved.find(name);
    if (found == saved.end() || is_extra_state(name) || found->second.sizes() != tensor.sizes())
      continue;
    if (is_quantized(found->second, tensor)) {
      tensor.copy_(dequantized(saved, name));
    } else if (is_convertible(found->second.scalar_type(), tensor.scalar_type())) {
      tensor.copy_(found->second);
    }
  }
  return difference;
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

void load_module_state(torch::nn::Module& module, const StateDict& state) {
  load_weights(module, state.tensors());
}

}  // namespace treadle
