#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/model/layer.h>

namespace treadle {

/// The factory of a layer that is constructed from (const Config&, const LayerSpec&):
///
///     registrar.add<FactoryOf<Dense>, LayerFactory>("dense");
///
/// A layer with parameters that may contradict each other has a static `check(const Config&)`.
template <typename L>
class FactoryOf final : public LayerFactory {
 public:
  explicit FactoryOf(const Config& config) : config_(config) {
    if constexpr (requires { L::check(config); })
      L::check(config);
  }

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<L>(config_, spec);
  }

  Config config_;
};

/// The stream of a layer that takes no references. Throws a DataError where there are others.
const TensorSpec& only_input(const LayerSpec& spec);

}  // namespace treadle
