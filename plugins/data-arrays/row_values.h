#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data_spec.h>

#include "reading.h"

namespace treadle::arrays {

/// What belongs to each row beside its inputs; read whole, into memory. A number that is missing or
/// cannot be used is a problem of the reading, or drops its row. Throws DataError for an array that
/// is of the wrong shape.

/// In the run's dtype, [N], >= 0, not all of them 0.
at::Tensor read_weights(const ArrayFiles& array, Reading& reading);
/// int64 [N].
at::Tensor read_groups(const ArrayFiles& array, Reading& reading);
/// float64 [N].
at::Tensor read_times(const ArrayFiles& array, Reading& reading);

struct Targets {
  TargetSpec spec;
  /// Of classes: what stands for each in the files, in the order of the class names.
  std::vector<std::int64_t> labels;
  at::Tensor values;  ///< as Batch has them, for all rows
};

/// `known` are those of the training when the files must fit them, else null.
Targets read_targets(const ArrayFiles& array, const std::string& name, const Targets* known,
                     Reading& reading);

}  // namespace treadle::arrays
