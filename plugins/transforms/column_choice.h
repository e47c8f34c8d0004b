#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/data_spec.h>

namespace treadle::transforms {

/// Whether a port has numbers that a transform may change: features, or images that are no bytes.
bool is_numbers(const PortSpec& port);

/// `"text" (tokens), "color" (categories)`: the inputs with their roles, for messages.
std::string described_inputs(const DataSpec& spec);

/// The port of features that belongs to a port of categories: "x" for "x.categories", "features"
/// for any other name.
std::string features_beside(const std::string& categories);

/// The run's dtype, from the first port of numbers; float32 without one.
c10::ScalarType number_dtype(const DataSpec& spec);

/// The columns of the data's tables that a transform works on: those its parameter "columns" names,
/// or those that suit it.
class ColumnChoice {
 public:
  /// Reads "columns". `component` is the transform's name, for messages.
  ColumnChoice(const Config& config, std::string component);

  /// For each port and each of its columns, whether it is chosen; nothing for ports that are not
  /// tables. Throws DataError when a named column is not there, or is not one that `suits`;
  /// `requirement` says what such a column is: "is a category".
  std::vector<std::vector<bool>> choose(const DataSpec& spec,
                                        const std::function<bool(const Column&)>& suits,
                                        const std::string& requirement) const;

  bool has_names() const { return names_.has_value(); }
  const std::string& component() const { return component_; }

 private:
  std::string component_;
  std::optional<std::vector<std::string>> names_;
};

/// Whether any column is chosen.
bool any_chosen(const std::vector<std::vector<bool>>& chosen);

}  // namespace treadle::transforms
