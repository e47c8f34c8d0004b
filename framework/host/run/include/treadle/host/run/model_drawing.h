#pragma once

#include <string>
#include <vector>

namespace treadle {

/// A model's parts for the report, provided by a caller that knows the model's type.
struct ModelDrawing {
  /// A table: its head, then a row for each part. Indentation of the first cell shows nesting.
  std::vector<std::vector<std::string>> parts;
  std::string svg;  ///< a picture, or empty
};

}  // namespace treadle
