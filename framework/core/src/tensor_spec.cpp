#include <treadle/core/tensor_spec.h>

#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

/// As PyTorch calls them.
std::string_view dtype_name(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Long:
      return "int64";
    case c10::ScalarType::Int:
      return "int32";
    case c10::ScalarType::Byte:
      return "uint8";
    case c10::ScalarType::Bool:
      return "bool";
    default:
      return c10::toString(dtype);
  }
}

}  // namespace

TensorSpec TensorSpec::of(const at::Tensor& tensor) {
  return tensor.defined() ? TensorSpec(tensor.sizes().vec(), tensor.scalar_type()) : absent();
}

std::int64_t TensorSpec::width() const {
  TREADLE_EXPECTS(!sizes.empty() && sizes.back() != kVaries,
                  "the width of " + text() + " is not known");
  return sizes.back();
}

std::string TensorSpec::text() const {
  if (is_absent())
    return "nothing";
  std::string shape;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0)
      shape += ", ";
    if (sizes[i] != kVaries) {
      shape += std::to_string(sizes[i]);
    } else {
      shape += i == 0 ? "B" : "?";
    }
  }
  shape = "[" + shape + "]";
  const bool is_usual = dtype == c10::ScalarType::Float || dtype == c10::ScalarType::Double;
  return is_usual ? shape : shape + " " + std::string(dtype_name(dtype));
}

}  // namespace treadle
