#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/model/layer.h>

namespace treadle::cells {

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

}  // namespace treadle::cells
