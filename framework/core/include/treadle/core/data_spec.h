#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>
#include <nlohmann/json_fwd.hpp>

/// Specifications of data, without any data: for data providers, transforms, models and losses.
///
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

/// The task that a document sets; kAuto leaves the choice to the data and the loss.
enum class Task { kAuto, kClassification, kRegression };

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

/// Shorthands for the usual targets.
TargetSpec class_target(std::string name, std::vector<std::string> class_names,
                        std::vector<std::int64_t> positions = {});
TargetSpec number_target(std::string name, std::int64_t width = 1);

struct DataSpec {
  std::vector<PortSpec> inputs;
  std::vector<TargetSpec> targets = {};  ///< empty: rows to predict on
  bool has_weights = false;
  bool has_dates = false;  ///< times are seconds since 1970-01-01T00:00:00Z

  /// The index of the target or port of that name. Throws a DataError that lists the names.
  std::size_t target_index(std::string_view name) const;
  std::size_t input_index(std::string_view name) const;
  bool operator==(const DataSpec&) const = default;
};

/// The stored form, for checkpoints and reports. from_json throws StorageError on anything else.
nlohmann::json to_json(const DataSpec& spec);
DataSpec data_spec_from_json(const nlohmann::json& stored);

}  // namespace treadle
