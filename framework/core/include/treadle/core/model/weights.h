#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

/// A module's weights in files: parameters and buffers by the names libtorch gives them, in the
/// safetensors format, which Python's `safetensors` reads and writes.
namespace treadle {

class StateDict;

using NamedTensors = std::map<std::string, at::Tensor, std::less<>>;

/// The differences between saved tensors and those of a module, name by name.
struct WeightsDifference {
  struct Misfit {
    std::string name;
    std::string expected;  ///< "[16, 4]" or "int64": the module's
    std::string got;       ///< what was saved
  };
  /// The module's, and not saved. A tied weight is saved under one of its names at least: Python's
  /// `safetensors.torch.save_model` leaves out the others. Float8Scales are never missing or
  /// unexpected.
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;  ///< saved, and not the module's
  std::vector<Misfit> of_other_shape;
  /// A number type that would lose its meaning: a whole number for a real one, or the other way
  /// round. Real numbers of another precision are converted.
  std::vector<Misfit> of_other_type;
  /// Of int8 weights whose scale is missing or damaged: quantized_weights.h.
  std::vector<Misfit> unusable_scales;
  /// Of parameters that are not finite, of numbers beyond the range of the module's precision, and
  /// of one tensor that is saved under two names with two values.
  std::vector<Misfit> unusable_values;

  bool empty() const;
  /// Whether the file is wrong, whatever fits: unusable scales or values.
  bool is_damage() const { return !unusable_scales.empty() || !unusable_values.empty(); }
  /// "missing: a, b; unexpected: c; …": each of them. If an unexpected name is similar to a missing
  /// one, the text mentions it.
  std::string text() const;
};

WeightsDifference compare_weights(const torch::nn::Module& module, const NamedTensors& saved);

/// Copies saved tensors into the module's, which stay where they are (in an arena, for example).
/// Real numbers are converted to the module's precision, int8 weights beside their scales are
/// dequantised. Strict: throws a StorageError with the whole difference, and has then changed
/// nothing.
void load_weights(torch::nn::Module& module, const NamedTensors& saved);
void load_weights(torch::nn::Module& module, const std::filesystem::path& file);

/// Whether at least one saved tensor would be copied, or there is nothing to fit.
bool fits_any(const torch::nn::Module& module, const NamedTensors& saved);

/// Copies what fits and leaves the rest as it is; returns the difference. Throws a StorageError
/// like load_weights() where the file is damaged, whatever fits: WeightsDifference::is_damage().
WeightsDifference load_matching_weights(torch::nn::Module& module, const NamedTensors& saved);
WeightsDifference load_matching_weights(torch::nn::Module& module,
                                        const std::filesystem::path& file);

/// Writes the module's parameters and buffers. The file takes the place of an older one in one
/// instant. `metadata`: text by name, for people and programs.
void save_weights(const torch::nn::Module& module, const std::filesystem::path& file,
                  std::map<std::string, std::string> metadata = {});

/// Copies saved tensors into a module's parameters and buffers, which stay where they are (in an
/// arena, for example). Strict: throws a StorageError that lists every name that is missing,
/// unexpected or does not fit.
void load_module_state(torch::nn::Module& module, const StateDict& state);

}  // namespace treadle
