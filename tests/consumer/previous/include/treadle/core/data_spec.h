#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

/// What data looks like, without any data: shared by data providers, transforms, models and losses.
namespace treadle {

/// What is to be predicted.
enum class TargetKind {
  kNone,     ///< nothing: rows to predict on
  kClasses,  ///< one of `class_names`, as an index
  kNumbers   ///< `width` real numbers
};

/// The task a document asks for; kAuto leaves the choice to the data and the loss.
enum class Task { kAuto, kClassification, kRegression };

/// One column of a table.
struct Column {
  std::string name;
  /// Not empty for a category: the value is an index into this list, stored as a number.
  std::vector<std::string> categories;
  /// Some values are NaN, meaning "missing". A model never sees such a column: `impute` fills it.
  bool may_be_missing = false;

  bool operator==(const Column&) const = default;
};

/// One named input of a model.
struct PortSpec {
  std::string name;
  /// The shape of one row, without the batch dimension: {4} for a table of four columns.
  std::vector<std::int64_t> shape;
  /// For a table, its columns in order (shape[0] of them); empty for anything else.
  std::vector<Column> columns;

  bool operator==(const PortSpec&) const = default;
};

/// One named target.
struct TargetSpec {
  std::string name;
  TargetKind kind = TargetKind::kNone;
  std::int64_t width = 0;                ///< numbers: how many; classes: 1
  std::vector<std::string> class_names;  ///< classes: in index order

  std::int64_t class_count() const { return static_cast<std::int64_t>(class_names.size()); }
  bool operator==(const TargetSpec&) const = default;
};

struct DataSpec {
  std::vector<PortSpec> inputs;
  TargetSpec target;
  bool has_weights = false;

  bool operator==(const DataSpec&) const = default;
};

/// The stored form, for checkpoints and reports. from_json throws StorageError on anything else.
nlohmann::json to_json(const DataSpec& spec);
DataSpec data_spec_from_json(const nlohmann::json& stored);

}  // namespace treadle
