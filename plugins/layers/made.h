#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/layer.h>

/// What the layers of this folder have in common.
namespace treadle::layers {

/// The factory of a layer that is constructed from (const Config&, const LayerSpec&). A layer with
/// parameters that may contradict each other has a static `check(const Config&)`.
template <typename L>
class Made final : public LayerFactory {
 public:
  explicit Made(const Config& config) : config_(config) {
    if constexpr (requires { L::check(config); })
      L::check(config);
  }

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<L>(config_, spec);
  }

  Config config_;
};

/// The stream, of so many dimensions, the batch among them. Throws a DataError: "takes images [B,
/// channels, height, width], got [B, 4]".
const TensorSpec& expect_dimensions(const LayerSpec& spec, std::size_t dimensions,
                                    std::string_view wanted);
/// The stream, of at least so many.
const TensorSpec& expect_at_least(const LayerSpec& spec, std::size_t dimensions,
                                  std::string_view wanted);

/// Only the stream: the layer takes no references.
const TensorSpec& only_input(const LayerSpec& spec);

/// The index of a dimension of `spec`; negative ones count from the end.
std::size_t axis_of(std::int64_t dim, const TensorSpec& spec);

/// A whole number for each of `count` dimensions: one for all, or a list.
std::vector<std::int64_t> per_dimension(const Config& config, std::string_view key,
                                        std::size_t count);

}  // namespace treadle::layers
