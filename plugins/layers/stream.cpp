#include "stream.h"

#include <string>

#include <treadle/base/error.h>

namespace treadle::layers {

std::size_t axis_of(std::int64_t dim, const TensorSpec& spec) {
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(spec.sizes.size())
                                          : dim);
}

const TensorSpec& expect_dimensions(const LayerSpec& spec, std::size_t dimensions,
                                    std::string_view wanted) {
  const TensorSpec& input = spec.inputs.front();
  if (input.sizes.size() != dimensions)
    throw DataError("takes " + std::string(wanted) + ", got " + input.text());
  return input;
}

const TensorSpec& expect_at_least(const LayerSpec& spec, std::size_t dimensions,
                                  std::string_view wanted) {
  const TensorSpec& input = spec.inputs.front();
  if (input.sizes.size() < dimensions)
    throw DataError("takes " + std::string(wanted) + ", got " + input.text());
  return input;
}

std::vector<std::int64_t> per_dimension(const Config& config, std::string_view key,
                                        std::size_t count) {
  if (!config.json().at(std::string(key)).is_array())
    return std::vector<std::int64_t>(count, config.get<std::int64_t>(key));
  auto sizes = config.get<std::vector<std::int64_t>>(key);
  if (sizes.size() != count) {
    config.fail(key, "has a number for each of " + std::to_string(count) +
                         " dimensions, or one for all; got " + std::to_string(sizes.size()));
  }
  return sizes;
}

}  // namespace treadle::layers
