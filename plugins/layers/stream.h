#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/factory_of.h>

namespace treadle::layers {

/// The stream, of so many dimensions, the batch among them. Throws a DataError: "takes images [B,
/// channels, height, width], got [B, 4]".
const TensorSpec& expect_dimensions(const LayerSpec& spec, std::size_t dimensions,
                                    std::string_view wanted);
/// The stream, of at least so many.
const TensorSpec& expect_at_least(const LayerSpec& spec, std::size_t dimensions,
                                  std::string_view wanted);

/// The index of a dimension of `spec`; negative ones count from the end.
std::size_t axis_of(std::int64_t dim, const TensorSpec& spec);

/// A whole number for each of `count` dimensions: one for all, or a list.
std::vector<std::int64_t> per_dimension(const Config& config, std::string_view key,
                                        std::size_t count);

}  // namespace treadle::layers
