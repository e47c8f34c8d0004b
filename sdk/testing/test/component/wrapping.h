#pragma once

#include <memory>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/training/gradient_strategy.h>

namespace treadle::testing {

/// Another strategy's gradients as they are: a component that is made of another.
class Wrapping : public GradientStrategy {
 public:
  Wrapping(const Config& config, const ComponentContext& context)
      : inner_(make_nested<GradientStrategy>(context, config, "inner")) {}

 private:
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    return inner_->add_gradients(task, batch, context);
  }

  std::unique_ptr<GradientStrategy> inner_;
};

}  // namespace treadle::testing
