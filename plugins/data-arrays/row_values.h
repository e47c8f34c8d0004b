#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/data_spec.h>

#include "reading.h"

namespace treadle::arrays {

using ArrayPtr = std::shared_ptr<const ArrayFiles>;

/// What belongs to each row beside its inputs; read whole, into memory, or left in the file where
/// inputs are and the file has the type. A number that is missing or
/// cannot be used is a problem of the reading, or drops its row. Throws DataError for an array that
/// is of the wrong shape.

/// In the run's dtype, [N], >= 0, not all of them 0.
at::Tensor read_weights(const ArrayPtr& array, Reading& reading);
/// int64 [N].
at::Tensor read_groups(const ArrayPtr& array, Reading& reading);
/// float64 [N].
at::Tensor read_times(const ArrayPtr& array, Reading& reading);
/// int64 [N]: each from 0 to `longest`, the positions of a row of `of`.
at::Tensor read_lengths(const ArrayFiles& array, std::int64_t longest, const ArrayFiles& of,
                        Reading& reading);

struct Targets {
  TargetSpec spec;
  /// Of classes: what stands for each in the files, in the order of the class names.
  std::vector<std::int64_t> labels;
  at::Tensor values;   ///< as Batch has them, for all rows; padding and what is ignored are 0
  at::Tensor weights;  ///< of the positions, in the run's dtype; 0 for padding; or undefined
};

/// One target, as it is to be read.
struct TargetRequest {
  const ArrayPtr& array;
  std::string name;
  const TargetOption& option;
  const Targets* known;                 ///< of the training, when the files must fit it, else null
  at::Tensor lengths;                   ///< of the input it is padded like: int64 [N], or undefined
  const ArrayFiles* weights = nullptr;  ///< of its positions; null: each counts 1
};

Targets read_targets(const TargetRequest& request, Reading& reading);

}  // namespace treadle::arrays
