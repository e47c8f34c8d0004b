#pragma once

#include <vector>

#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>

#include "stream.h"

namespace treadle::layers {

enum class Pool { kMax, kAverage };

/// Windows of [B, channels, …] become their largest element or their mean; sizes as in
/// torch.nn.MaxPool and AvgPool. A `stride` of 0 is the window's size.
template <std::size_t kDimensions, Pool kPool>
class Pooling final : public Layer, public Lowerable {
 public:
  Pooling(const Config& config, const LayerSpec& spec);
  static void check(const Config& config);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  std::vector<std::int64_t> kernel_;
  std::vector<std::int64_t> stride_;
  std::vector<std::int64_t> padding_;
};

/// The same with windows that give a result of `size` from any input.
template <std::size_t kDimensions, Pool kPool>
class AdaptivePooling final : public Layer, public Lowerable {
 public:
  AdaptivePooling(const Config& config, const LayerSpec& spec);
  static void check(const Config& config);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  std::vector<std::int64_t> size_;
};

}  // namespace treadle::layers
