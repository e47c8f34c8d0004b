#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// Shapes are those of one row, as in port_spec.h.
namespace treadle {

/// The values that a target has.
enum class TargetKind {
  kClasses,      ///< one of `class_names`, as an index, at each position; int64
  kNumbers,      ///< real numbers, here and below: float32 or float64; the run's for a loss
  kLabels,       ///< any number of `class_names` at once: 0 or 1 for each
  kDistribution  ///< a probability for each of `class_names`
};

/// "classes", "numbers", "labels", "distribution": how documents and schemas spell it.
std::string_view name_of(TargetKind kind);

/// One named target.
///
/// Its *positions* are what a loss averages over and what a weight belongs to: rows, time steps,
/// pixels. Classes have one value per position; the other kinds have their last dimension beside
/// it: the numbers of a vector, or one value per class.
struct TargetSpec {
  std::string name;
  TargetKind kind = TargetKind::kNumbers;
  /// Classes: the positions: {} for one class a row, {28, 28} for one per pixel, {kVaries} for one
  /// per time step. Others: the positions and the width: {1} for one number a row.
  std::vector<std::int64_t> shape = {1};
  std::vector<std::string> class_names = {};  ///< in index order; empty for numbers
  /// The input port whose lengths this target shares: positions beyond them are padding and have
  /// no weight. Empty: no padding.
  std::string padded_like = {};

  /// The shape without the width.
  std::vector<std::int64_t> positions() const;
  std::size_t position_dimensions() const {
    return shape.size() - (kind == TargetKind::kClasses ? 0 : 1);
  }
  /// How many values a position has: 1 for classes.
  std::int64_t width() const;
  std::int64_t class_count() const { return static_cast<std::int64_t>(class_names.size()); }
  bool operator==(const TargetSpec&) const = default;
};

/// Throws a DataError unless the target is of one of these kinds. `who` needs it: "loss \"mse\"".
/// `instead`: names that suit its own kind, "cross_entropy or kl_div".
void expect_kind(const std::string& who, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target, std::string_view instead);

/// Shorthands for the usual targets.
TargetSpec class_target(std::string name, std::vector<std::string> class_names,
                        std::vector<std::int64_t> positions = {});
TargetSpec number_target(std::string name, std::int64_t width = 1);

}  // namespace treadle
