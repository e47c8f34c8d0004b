#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <c10/core/ScalarType.h>

namespace treadle {

/// How numbers are scaled before they are rounded to float8: the largest magnitude becomes the
/// largest number of the format.
enum class Float8Scaling {
  kTensorwise,  ///< one scale for a tensor, of its values
  kRowwise,     ///< one for each row that a product sums over, of its values
  kDelayed,     ///< one for a tensor, of its values in earlier steps (float8_scales.h)
};

/// The dtypes of a training: the document's `precision`. Features, losses, metrics and what
/// optimizers work on have at least float32 in all of them. Gradients have the parameters' dtype
/// until they are added over shards or reach the optimizer.
struct Precision {
  /// Of the model's parameters, of its floating-point inputs, and of what it computes.
  c10::ScalarType parameters = c10::ScalarType::Float;
  /// "mixed": libtorch's autocast computes matrix products and convolutions in this.
  std::optional<c10::ScalarType> autocast = std::nullopt;
  /// The factors of linear_in_precision() (linear.h) are rounded to float8.
  std::optional<Float8Scaling> float8 = std::nullopt;
  /// The loss is multiplied before it is back-propagated (engine/loss_scale.h): float16 has no
  /// number below 6e-8.
  bool scales_loss = false;

  /// Of features, targets and weights: float32, or float64.
  c10::ScalarType data() const {
    return parameters == c10::ScalarType::Double ? parameters : c10::ScalarType::Float;
  }
  /// Whether a model takes and gives other dtypes than data().
  bool converts() const { return autocast.has_value() || parameters != data(); }

  bool operator==(const Precision&) const = default;
};

struct NamedPrecision {
  std::string_view name;  ///< in documents
  Precision precision;
};

/// All there are.
std::span<const NamedPrecision> precisions();
/// Expects one of them.
Precision precision_named(std::string_view name);

}  // namespace treadle
