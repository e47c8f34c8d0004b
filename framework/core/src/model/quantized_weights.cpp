#include <treadle/core/model/quantized_weights.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include <c10/core/ScalarType.h>

#include <treadle/base/error.h>

#include "components/tensor_words.h"

namespace treadle {
namespace {

constexpr double kMostSteps = 127;  // -128 has no counterpart

struct StoredType {
  NamedWeightDtype named;
  c10::ScalarType type;
};
constexpr std::array kStored{
    StoredType{{"float32", WeightDtype::kFloat32}, at::kFloat},
    StoredType{{"bfloat16", WeightDtype::kBFloat16}, at::kBFloat16},
    StoredType{{"float16", WeightDtype::kFloat16}, at::kHalf},
    StoredType{{"int8", WeightDtype::kInt8}, at::kChar},
};

constexpr std::array kNamed = [] {
  std::array<NamedWeightDtype, kStored.size()> named{};
  for (std::size_t i = 0; i < named.size(); ++i)
    named[i] = kStored[i].named;
  return named;
}();

c10::ScalarType scalar_type(WeightDtype dtype) {
  const auto* const found =
      std::find_if(kStored.begin(), kStored.end(),
                   [&](const StoredType& one) { return one.named.dtype == dtype; });
  TREADLE_EXPECTS(found != kStored.end(), "there is no such dtype of weights");
  return found->type;
}

/// The first value for which `is_wrong` holds, and where it is: "nan at [1, 2]"; empty for none.
std::string first_of(const at::Tensor& tensor, const at::Tensor& is_wrong) {
  const at::Tensor places = is_wrong.nonzero();
  if (places.size(0) == 0)
    return "";
  at::Tensor value = tensor;
  std::vector<std::int64_t> place;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    place.push_back(places[0][dim].item<std::int64_t>());
    value = value.select(0, place.back());
  }
  std::array<char, 32> digits{};
  std::to_chars(digits.data(), digits.data() + digits.size(), value.item<double>());
  return digits.data() + (" at " + shape_text(place));
}

void expect_finite(const at::Tensor& weight) {
  const std::string found = first_of(weight, weight.isfinite().logical_not());
  if (!found.empty()) {
    throw StorageError("expected finite values, got " + found +
                       "; keep the dtype that the model was trained in, or train it again");
  }
}

/// Rounds to nearest, as libtorch converts.
at::Tensor rounded_to(const at::Tensor& weight, c10::ScalarType type) {
  expect_finite(weight);
  at::Tensor rounded = weight.to(type);
  const std::string found = first_of(weight, rounded.isfinite().logical_not());
  if (!found.empty()) {
    throw StorageError(
        "expected values that " + type_text(type) + " can hold, got " + found +
        "; choose a dtype with a larger range, or keep the one that the model was trained in");
  }
  return rounded;
}

bool is_quantizable(const at::Tensor& weight) {
  return weight.dim() >= 2 && weight.numel() > 0;
}

std::vector<std::int64_t> scale_shape(const at::Tensor& weight) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
  shape.front() = weight.size(0);
  return shape;
}

void add_quantized(const std::string& name, const at::Tensor& weight, const NamedTensors& weights,
                   NamedTensors& converted) {
  if (weights.count(scale_name(name)) > 0) {
    throw StorageError("its scale would be called " + scale_name(name) +
                       ", which is the name of another tensor; choose float32, bfloat16 or "
                       "float16, or rename one of them in the model");
  }
  QuantizedWeight quantized = quantize(weight);
  converted.emplace(name, std::move(quantized.values));
  converted.emplace(scale_name(name), std::move(quantized.scale));
}

}  // namespace

std::span<const NamedWeightDtype> weight_dtypes() {
  return kNamed;
}

QuantizedWeight quantize(const at::Tensor& weight) {
  TREADLE_EXPECTS(
      c10::isFloatingType(weight.scalar_type()) && weight.dim() > 0 && weight.numel() > 0,
      "only a floating-point tensor with channels can be quantised");
  expect_finite(weight);
  const bool is_wide = weight.scalar_type() == at::kDouble;
  const at::Tensor exact = weight.detach().to(is_wide ? at::kDouble : at::kFloat);
  const at::Tensor largest =
      exact.abs().reshape({weight.size(0), -1}).amax(1).view(scale_shape(weight));
  at::Tensor scale = largest.div(kMostSteps).to(at::kFloat);
  const std::string found = first_of(largest, (scale * kMostSteps).isfinite().logical_not());
  if (!found.empty())
    throw StorageError("expected channels that float32 can hold, got one with " + found);
  scale.clamp_min_(std::numeric_limits<float>::min());
  scale.masked_fill_(largest == 0, 1);
  return {exact.div(scale).round_().clamp_(-kMostSteps, kMostSteps).to(at::kChar), scale};
}

at::Tensor dequantize(const QuantizedWeight& quantized) {
  return quantized.values.to(at::kFloat).mul_(quantized.scale);
}

std::string scale_name(std::string_view weight) {
  return std::string(weight) + ".scale";
}

NamedTensors convert_weights(const NamedTensors& weights,
                             const std::set<std::string, std::less<>>& buffers, WeightDtype dtype) {
  NamedTensors converted;
  for (const auto& [name, tensor] : weights) {
    const bool is_parameter =
        c10::isFloatingType(tensor.scalar_type()) && buffers.find(name) == buffers.end();
    try {
      if (is_parameter && dtype != WeightDtype::kInt8) {
        converted.emplace(name, rounded_to(tensor, scalar_type(dtype)));
      } else if (is_parameter && is_quantizable(tensor)) {
        add_quantized(name, tensor, weights, converted);
      } else {
        converted.emplace(name, tensor);
      }
    } catch (const StorageError& error) {
      throw StorageError("parameter " + name + ": " + error.what());
    }
  }
  return converted;
}

at::Tensor dequantized(const NamedTensors& saved, std::string_view name) {
  return dequantize({saved.find(name)->second, saved.find(scale_name(name))->second});
}

std::optional<WeightsDifference::Misfit> scale_misfit(const NamedTensors& saved,
                                                      std::string_view name) {
  const auto weight = saved.find(name);
  TREADLE_EXPECTS(weight != saved.end() && weight->second.dim() > 0,
                  "only a tensor with channels has a scale for each");
  const std::vector<std::int64_t> shape = scale_shape(weight->second);
  const std::string expected =
      "float32 " + shape_text(shape) + " of finite numbers that are not negative";
  const auto misfit = [&](const std::string& got) {
    return WeightsDifference::Misfit{scale_name(name), expected, got};
  };
  const auto found = saved.find(scale_name(name));
  if (found == saved.end())
    return misfit("nothing");
  const at::Tensor& scale = found->second;
  if (scale.scalar_type() != at::kFloat || scale.sizes() != at::IntArrayRef(shape))
    return misfit(type_text(scale.scalar_type()) + " " + shape_text(scale.sizes()));
  const std::string wrong = first_of(scale, scale.isfinite().logical_and(scale >= 0).logical_not());
  if (!wrong.empty())
    return misfit(wrong);
  return std::nullopt;
}

}  // namespace treadle
