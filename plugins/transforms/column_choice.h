#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data_spec.h>

namespace treadle::transforms {

/// Which columns of the data's tables a transform works on: those its parameter "columns" names, or
/// those that suit it.
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

}  // namespace treadle::transforms
