#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/model/tensor_spec.h>

/// Steps that several networks have. Names are those of the reference implementations.
namespace treadle::networks {

nlohmann::json named(const std::string& layer, const std::string& name);

/// A linear map of the last dimension.
nlohmann::json dense(const std::string& name, std::int64_t out_features);

/// Throws a DocumentError where "num_heads" does not divide the width under this key.
void expect_even_heads(const Config& config, const char* width_key);

/// Nothing for p = 0.
void add_dropout(nlohmann::json& steps, double p);

/// A flow of its own, so that its nodes are "name.conv1" and so on.
nlohmann::json part(const std::string& name, nlohmann::json steps);

/// Images [B, channels, height, width] as patches [B, (height / size) · (width / size), width]:
/// a convolution "name" whose stride is its size. Dosovitskiy et al. (2021), section 3.1.
void add_patches(nlohmann::json& steps, const std::string& name, std::int64_t size,
                 std::int64_t width);

/// The number of patches. Throws a DataError for other than images of known sizes that patches
/// divide.
std::int64_t patches_of(const TensorSpec& images, std::int64_t size);

}  // namespace treadle::networks
