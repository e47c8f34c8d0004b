#pragma once

#include <span>
#include <string>
#include <vector>

#include <treadle/core/model/weights.h>

/// Weights of several files in one module: a network made of pieces of trained ones.
namespace treadle {

/// Saved tensors, and the part of the module that they are for. With `from` "block" and `to`
/// "branches.0", "block.weight" of the file is "branches.0.weight" of the module. Empty: all of the
/// file, all of the module.
struct WeightsSource {
  std::string file;  ///< for messages
  NamedTensors tensors;
  std::string from = {};
  std::string to = {};
  /// Its tensors are exactly those of its part of the module; else those that match are taken.
  bool is_strict = true;
  /// The dtype by the name of tensors of the file that cannot be read; a strict source has none.
  std::map<std::string, std::string> left_out = {};
};

/// Copies the tensors of all sources into the module's, as load_weights() of weights.h does. Parts
/// of the module that no source is for stay as they are. All mistakes are found before anything is
/// changed: throws a StorageError with a line for each source whose tensors do not fit, or of which
/// none does, whose `from` or `to` has no tensors, and for each tensor that two sources give.
///
/// Returns for each source what did not match, as WeightsDifference::text(): empty for strict ones.
std::vector<std::string> load_weights(torch::nn::Module& module,
                                      std::span<const WeightsSource> sources);

}  // namespace treadle
