#include "stream.h"

#include <treadle/base/error.h>

namespace treadle::softmax {

std::int64_t dim_of_row(const Config& config, const TensorSpec& stream) {
  const auto dimensions = static_cast<std::int64_t>(stream.sizes.size());
  const auto given = config.get<std::int64_t>("dim");
  const std::int64_t dim = given < 0 ? given + dimensions : given;
  if (dim < 1 || dim >= dimensions) {
    throw DataError("normalizes along a dimension of each row, 1 to " +
                    std::to_string(dimensions - 1) + " of " + stream.text() +
                    ", got \"dim\": " + std::to_string(given));
  }
  return dim;
}

void expect_width(const TensorSpec& stream, std::int64_t wanted, const std::string& why) {
  if (stream.sizes.size() < 2 || stream.sizes.back() != wanted) {
    throw DataError("takes rows of " + std::to_string(wanted) + " numbers (" + why + "), got " +
                    stream.text());
  }
}

}  // namespace treadle::softmax
