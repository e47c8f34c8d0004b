#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

/// Shapes are those of one row: they leave out the batch dimension. `kVaries` stands for a
/// dimension that differs from row to row, such as the length of a text; a batch pads it to its
/// longest row.
namespace treadle {

inline constexpr std::int64_t kVaries = -1;

/// The contents of an input port.
enum class Role {
  kFeatures,    ///< numbers: a table, a signal; of PortSpec::dtype, or bytes where it is no table
  kCategories,  ///< one index per column into `Column::categories`, -1 for a missing one; int64
  kTokens,      ///< indices into one vocabulary of `vocabulary_size` entries; int64
  kImage,       ///< [channels, height, width]: of PortSpec::dtype, or bytes (uint8)
  // Auxiliary ports, which belong to another one, PortSpec::of:
  kLengths,  ///< how many positions of a row are not padding; int64, shape {}
  kMask,     ///< true where a position counts; bool
  kSegments  ///< which document of a packed row a position belongs to, from 0; int64
};

/// One column of a table.
struct Column {
  std::string name;
  /// The dictionary of a category; empty for a number.
  std::vector<std::string> categories = {};
  /// Some values are missing: NaN for a number, -1 for a category. A model never receives such a
  /// column: `impute` fills it.
  bool may_be_missing = false;

  bool operator==(const Column&) const = default;
};

/// One named input of a model.
struct PortSpec {
  std::string name;
  /// {4} for a table of four columns, {kVaries} for texts.
  std::vector<std::int64_t> shape;
  /// The columns of a table, or of windows of a table, in order: shape.back() of them. Empty for
  /// anything else. `is_table()` tells them apart.
  std::vector<Column> columns = {};
  Role role = Role::kFeatures;
  /// Numbers: float32 or float64 as data has them, which holds each exactly; the run's for a model.
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::int64_t vocabulary_size = 0;  ///< of tokens
  std::string of = {};               ///< of lengths, masks and segments: the port they describe

  /// Lengths, masks and segments: no data of its own.
  bool is_auxiliary() const { return !of.empty(); }
  /// Whether a row is a row of a table with columns.
  bool is_table() const { return !columns.empty() && shape.size() == 1; }
  bool operator==(const PortSpec&) const = default;
};

}  // namespace treadle
