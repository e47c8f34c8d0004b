#include "dropout.h"

#include <ATen/ops/alpha_dropout.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/feature_dropout.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/plan/ops.h>

namespace treadle::layers {
template <Drops kDrops>
Dropout<kDrops>::Dropout(const Config& config, const LayerSpec& spec)
    : rate_(config.get<double>("p")) {
  only_input(spec);
  if constexpr (kDrops == Drops::kChannels)
    expect_at_least(spec, 3, "channels in dimension 1 and something behind them");
}

template <Drops kDrops>
at::Tensor Dropout<kDrops>::forward(const Inputs& inputs, LayerContext&) {
  if (!is_training() || rate_ == 0)
    return inputs[0];
  if (rate_ >= 1)
    return at::zeros_like(inputs[0]);
  if constexpr (kDrops == Drops::kElements) {
    return at::dropout(inputs[0], rate_, /*train=*/true);
  } else if constexpr (kDrops == Drops::kChannels) {
    return at::feature_dropout(inputs[0], rate_, /*train=*/true);
  } else {
    return at::alpha_dropout(inputs[0], rate_, /*train=*/true);
  }
}

template <Drops kDrops>
std::optional<PlanValue> Dropout<kDrops>::lower(PlanBuilder& builder,
                                                std::span<const PlanValue> inputs) const {
  if (!is_training() || rate_ == 0)
    return inputs[0];
  if (kDrops != Drops::kElements || rate_ >= 1)
    return std::nullopt;
  return builder.apply(plan_dropout(rate_), inputs[0]);
}

template class Dropout<Drops::kElements>;
template class Dropout<Drops::kChannels>;
template class Dropout<Drops::kAlpha>;

}  // namespace treadle::layers
