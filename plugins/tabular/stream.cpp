#include "stream.h"

#include <treadle/base/error.h>

namespace treadle::tabular {

std::int64_t width_of_rows(const LayerSpec& spec) {
  const TensorSpec& stream = spec.inputs.front();
  if (spec.inputs.size() != 1 || stream.sizes.size() != 2 ||
      stream.sizes.back() == TensorSpec::kVaries) {
    throw DataError("takes one input of rows of numbers [B, width], got " + stream.text());
  }
  return stream.width();
}

}  // namespace treadle::tabular
