#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/model/layer.h>

/// What the layers of this folder have in common.
namespace treadle::tabular {

/// The factory of a layer that is constructed from (const Config&, const LayerSpec&).
template <typename L>
class Made final : public LayerFactory {
 public:
  explicit Made(const Config& config) : config_(config) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<L>(config_, spec);
  }

  Config config_;
};

/// The width of the stream, which is rows of numbers [B, width] and the only input. Throws a
/// DataError for anything else.
std::int64_t width_of_rows(const LayerSpec& spec);

}  // namespace treadle::tabular
