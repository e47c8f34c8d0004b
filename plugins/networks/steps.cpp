#include "steps.h"

#include <utility>

#include <treadle/base/error.h>

namespace treadle::networks {

using nlohmann::json;

json named(const std::string& layer, const std::string& name) {
  return {{"use", layer}, {"name", name}};
}

json dense(const std::string& name, std::int64_t out_features) {
  json step = named("dense", name);
  step["out_features"] = out_features;
  return step;
}

void expect_even_heads(const Config& config, const char* width_key) {
  const auto width = config.get<std::int64_t>(width_key);
  const auto heads = config.get<std::int64_t>("num_heads");
  if (width % heads != 0) {
    config.fail("num_heads", "has " + std::to_string(heads) +
                                 " heads, which do not divide the width of " +
                                 std::to_string(width));
  }
}

void add_dropout(json& steps, double p) {
  if (p > 0)
    steps.push_back({{"use", "dropout"}, {"p", p}});
}

json part(const std::string& name, json steps) {
  json step = named("flow", name);
  step["flow"] = std::move(steps);
  return step;
}

void add_patches(json& steps, const std::string& name, std::int64_t size, std::int64_t width) {
  json convolution = named("conv2d", name);
  convolution["out_channels"] = width;
  convolution["kernel_size"] = size;
  convolution["stride"] = size;
  steps.push_back(std::move(convolution));
  steps.push_back({{"use", "flatten"}, {"start_dim", 2}});
  steps.push_back({{"use", "transpose"}});
}

std::int64_t patches_of(const TensorSpec& images, std::int64_t size) {
  const std::vector<std::int64_t>& sizes = images.sizes;
  if (sizes.size() != 4 || sizes[2] == TensorSpec::kVaries || sizes[3] == TensorSpec::kVaries) {
    throw DataError("takes images [B, channels, height, width] of one size, got " + images.text());
  }
  if (sizes[2] % size != 0 || sizes[3] % size != 0) {
    throw DataError("has patches of " + std::to_string(size) + " x " + std::to_string(size) +
                    ", which do not divide images of " + std::to_string(sizes[2]) + " x " +
                    std::to_string(sizes[3]));
  }
  return (sizes[2] / size) * (sizes[3] / size);
}

}  // namespace treadle::networks
