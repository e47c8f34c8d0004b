#pragma once

#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>

#include "stream.h"

namespace treadle::layers {

enum class Drops {
  kElements,  ///< each element by itself
  kChannels,  ///< all of a channel of a row (dimension 1) together
  kAlpha      ///< so that mean and variance of what selu gives stay; Klambauer et al. (2017)
};

/// In training a share of the values is set to 0 and the others are divided by what is left; in
/// evaluation nothing happens. Srivastava et al. (2014). A rate of 1 gives zeros without a
/// gradient.
template <Drops kDrops>
class Dropout final : public Layer, public Lowerable, public DrawsInTraining {
 public:
  Dropout(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  bool draws_in_training() const override { return rate_ > 0; }

 private:
  double rate_;
};

}  // namespace treadle::layers
