#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <treadle/core/model/weights.h>

/// Weights in fewer bits than they are computed in, for files: half precision, and int8 with a
/// scale per channel. load_weights() reads both; convert_weights() makes them.
///
/// int8 is symmetric, per channel of dimension 0 (the output channels of dense and convolution
/// layers, the entries of an embedding), in float32:
///
///     scale[c] = max(|w[c]|) / 127         q = clamp(round_half_to_even(w / scale), -127, 127)
///
/// and read as w = q * scale. A file has the int8 tensor `NAME` [C, …] and beside it the float32
/// tensor `NAME.scale` [C, 1, …] with as many dimensions, so that the product is a broadcast.
///
/// No element changes by more than scale / 2, apart from the rounding of the float32 operations:
/// 1e-5 * scale. A channel of zeros has the scale 1. No scale is below the smallest normal float32,
/// where float32 loses digits.
namespace treadle {

/// The dtype of floating-point parameters in a file.
enum class WeightDtype { kFloat32, kBFloat16, kFloat16, kInt8 };

struct NamedWeightDtype {
  std::string_view name;  ///< "bfloat16"
  WeightDtype dtype;
};

/// All there are.
std::span<const NamedWeightDtype> weight_dtypes();

struct QuantizedWeight {
  at::Tensor values;  ///< int8 [C, …]
  at::Tensor scale;   ///< float32 [C, 1, …]
};

/// Expects a floating-point tensor of one dimension at least, with elements. Throws StorageError
/// where a value is not finite, or too large for a float32 scale.
QuantizedWeight quantize(const at::Tensor& weight);
/// float32 [C, …]. Expects what quantize() returns.
at::Tensor dequantize(const QuantizedWeight& quantized);

/// "NAME.scale"
std::string scale_name(std::string_view weight);

/// The weights with floating-point parameters in another dtype, rounded to nearest. Unchanged are
/// `buffers`, integers, booleans, and for int8 parameters of fewer than two dimensions (biases,
/// norms) or without elements. Throws StorageError naming the parameter where a value is not
/// finite, or would not be in that dtype, and where NAME.scale is the name of another tensor.
NamedTensors convert_weights(const NamedTensors& weights,
                             const std::set<std::string, std::less<>>& buffers, WeightDtype dtype);

/// The int8 tensor `name` of `saved` as float32 values. Expects that scale_misfit() is nullopt.
at::Tensor dequantized(const NamedTensors& saved, std::string_view name);

/// Why the int8 tensor `name` of `saved` cannot be dequantised: its scale is missing, of another
/// shape or dtype, or has a value that is negative or not finite. nullopt where it can.
std::optional<WeightsDifference::Misfit> scale_misfit(const NamedTensors& saved,
                                                      std::string_view name);

}  // namespace treadle
