#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// Names its parts, so that documents can select their parameters.
class NamesParts {
 public:
  virtual ~NamesParts();
  virtual std::vector<std::string> part_names() const = 0;
  /// Names as in named_parameters(); empty for a part without parameters. Expects one of
  /// part_names().
  virtual std::vector<std::string> parameters_of_part(std::string_view name) const = 0;
};

}  // namespace treadle
