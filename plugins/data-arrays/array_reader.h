#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/data/data_provider.h>

#include "array_options.h"
#include "array_rows.h"

namespace treadle::arrays {

/// What the training files taught, which later files must fit.
struct ArrayDescription {
  std::vector<PortSpec> inputs;
  std::vector<TargetSpec> targets;
  /// One per target; of classes: what stands for each in the files, in the order of the class
  /// names.
  std::vector<std::vector<std::int64_t>> labels;
};

struct OpenedArrays {
  ArrayDescription description;
  ArrayRows::Parts rows;
  std::string content_hash;
};

/// Opens the files and reads all of them once, in pieces: whatever is wrong with the numbers is
/// found here, missing values and classes too, and the hash is over every byte. With `known` the
/// files are read to fit it. Throws DataError.
OpenedArrays open_arrays(const ArrayOptions& options, const OpenRequest& request,
                         const std::optional<ArrayDescription>& known);

}  // namespace treadle::arrays
