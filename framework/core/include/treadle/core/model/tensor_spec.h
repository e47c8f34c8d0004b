#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/ScalarType.h>

namespace at {
class Tensor;
}

namespace treadle {

/// Shape and type of a tensor that does not exist yet.
struct TensorSpec {
  /// In `sizes`: whatever the data decides, above all the number of rows.
  static constexpr std::int64_t kVaries = -1;

  TensorSpec() = default;
  TensorSpec(std::vector<std::int64_t> sizes, c10::ScalarType dtype)
      : sizes(std::move(sizes)), dtype(dtype) {}

  /// No tensor: a state that no forward has written yet.
  static TensorSpec absent() { return {}; }
  bool is_absent() const { return dtype == c10::ScalarType::Undefined; }

  /// Of a tensor that is there; absent where it is undefined.
  static TensorSpec of(const at::Tensor& tensor);

  /// The last dimension, which most layers work on. Expects one that is known.
  std::int64_t width() const;

  /// "[B, 32]", "[B, ?, 8] int64"; float32 and float64 are not named. "nothing" when absent.
  std::string text() const;
  /// "float32", as PyTorch calls it.
  std::string dtype_text() const;

  /// Sizes and dtype; a vocabulary changes nothing of what a tensor looks like.
  bool operator==(const TensorSpec& other) const {
    return sizes == other.sizes && dtype == other.dtype;
  }

  std::vector<std::int64_t> sizes;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  /// Of indices, where it is known: how many entries their vocabulary has; for columns of
  /// categories [B, K] one number for each of the K columns.
  std::vector<std::int64_t> vocabulary = {};
};

}  // namespace treadle
