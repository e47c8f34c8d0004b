#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <treadle/core/data/port_spec.h>
#include <treadle/core/data/target_spec.h>

namespace treadle {

/// The task that a document sets; kAuto leaves the choice to the data and the loss.
enum class Task { kAuto, kClassification, kRegression };

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
