#pragma once

#include <array>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

/// Shapes and dtypes in messages, and in the hash of a table.
namespace treadle {

inline std::string shape_text(at::IntArrayRef sizes) {
  std::string text;
  for (const std::int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

struct TypeName {
  c10::ScalarType type;
  const char* name;
};
inline constexpr std::array kTypeNames{
    TypeName{at::kDouble, "float64"},    TypeName{at::kFloat, "float32"},
    TypeName{at::kBFloat16, "bfloat16"}, TypeName{at::kHalf, "float16"},
    TypeName{at::kLong, "int64"},        TypeName{at::kInt, "int32"},
    TypeName{at::kShort, "int16"},       TypeName{at::kChar, "int8"},
    TypeName{at::kByte, "uint8"},        TypeName{at::kBool, "bool"}};

inline std::string type_text(c10::ScalarType type) {
  for (const TypeName& entry : kTypeNames) {
    if (entry.type == type)
      return entry.name;
  }
  return c10::toString(type);
}

}  // namespace treadle
