#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/data/data_provider.h>

#include "image_options.h"
#include "image_rows.h"
#include "image_table.h"

namespace treadle::images {

/// The properties of a training target that later data must match.
struct TargetDescription {
  TargetSpec spec;
  /// Of masks: the value that stands for each class, in the order of the class names.
  std::vector<std::int64_t> mask_values = {};

  bool is_mask() const { return !mask_values.empty(); }
};

/// The target in columns of the table, for the rows `kept`. With `known`, the classes are those.
/// Throws DataError with file and row.
struct ReadTarget {
  TargetDescription description;
  ImageTarget target;
};
ReadTarget read_target(const ImageTable& table, const std::vector<std::size_t>& kept,
                       const ImageOptions& options, const OpenRequest& request,
                       const TargetDescription* known);

/// Makes class numbers of the values in `masks`, int16 [N, height, width] with kNoPixel where a
/// pixel does not count, in place.
ReadTarget number_masks(at::Tensor masks, const ImageTable& table,
                        const std::vector<std::size_t>& kept, const ImageOptions& options,
                        const TargetDescription* known);

}  // namespace treadle::images
