#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/model/layer.h>

/// What the layers of this folder have in common.
namespace treadle::softmax {

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

/// Only the stream: the layer takes no references.
const TensorSpec& only_input(const LayerSpec& spec);

/// The dimension of the stream that "dim" names, counted from its start: one of a row, since rows
/// of a batch are distributions of their own. Throws a DataError for any other.
std::int64_t dim_of_row(const Config& config, const TensorSpec& stream);

/// The size of the stream's last dimension, which has to be `wanted`; `why` names its factors.
void expect_width(const TensorSpec& stream, std::int64_t wanted, const std::string& why);

}  // namespace treadle::softmax
