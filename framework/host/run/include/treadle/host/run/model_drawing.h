#pragma once

#include <string>
#include <vector>

namespace treadle {

/// A model's parts for the report, drawn by the program that embeds the run.
struct ModelDrawing {
  /// A table: its head, then a row for each part. Indentation of the first cell shows nesting.
  std::vector<std::vector<std::string>> parts;
  std::string svg;  ///< a picture, or empty
};

}  // namespace treadle
