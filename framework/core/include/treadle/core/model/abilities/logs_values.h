#pragma once

#include <string>
#include <vector>

namespace treadle {

/// Declares the names of the values that a model, a layer or a gradient strategy logs, so that
/// conditions can name them and a wrong name is an error before the first batch. Found by
/// dynamic_cast. A model declares its auxiliary losses as well; a layer AddsLosses.
class LogsValues {
 public:
  virtual ~LogsValues();
  virtual std::vector<std::string> logged_names() const = 0;
};

}  // namespace treadle
