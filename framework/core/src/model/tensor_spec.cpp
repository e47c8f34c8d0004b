#include <treadle/core/model/tensor_spec.h>

#include <string>

#include <ATen/core/Tensor.h>

#include <treadle/base/error.h>

#include "components/tensor_words.h"

namespace treadle {

TensorSpec TensorSpec::of(const at::Tensor& tensor) {
  return tensor.defined() ? TensorSpec(tensor.sizes().vec(), tensor.scalar_type()) : absent();
}

std::int64_t TensorSpec::width() const {
  TREADLE_EXPECTS(!sizes.empty() && sizes.back() != kVaries,
                  "the width of " + text() + " is not known");
  return sizes.back();
}

std::string TensorSpec::dtype_text() const {
  return type_text(dtype);
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
  return is_usual ? shape : shape + " " + dtype_text();
}

}  // namespace treadle
