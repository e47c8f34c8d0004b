#pragma once

#include <string>
#include <vector>

namespace treadle {

/// Names its references; they are passed in this order.
class NamesReferences {
 public:
  virtual ~NamesReferences();
  virtual std::vector<std::string> reference_names() const = 0;
};

}  // namespace treadle
