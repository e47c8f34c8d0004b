#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>

#include <treadle/plan/op.h>

/// Constant folding, for plans of inference, whose weights stay as they are: a batch norm becomes a
/// part of the weights of the convolution before it. Needed by operations that are such a map, and
/// by operations whose weights can take one in.
namespace treadle {

/// y = scale · x + shift, with one scale and shift per index of a dimension.
struct ChannelMap {
  std::int64_t dim = 1;
  at::Tensor scale;  ///< [channels], float64
  at::Tensor shift;  ///< [channels], float64
};

/// An operation that may be a channel map. Found by dynamic_cast of a PlanOp.
class MapsChannels {
 public:
  virtual ~MapsChannels();
  /// forward() up to rounding, with the present weights; nothing where forward() combines several
  /// elements.
  virtual std::optional<ChannelMap> channel_map() const = 0;
};

/// An operation that can fold a channel map into its weights. Found by dynamic_cast of a PlanOp.
class TakesChannelMap {
 public:
  virtual ~TakesChannelMap();
  /// One operation for this one followed by the map, up to rounding, with the same keeps(). Null
  /// where the map's dimension is not the channel dimension. `result`: this operation's result,
  /// which is the map's input.
  virtual std::shared_ptr<const PlanOp> followed_by(const ChannelMap& map,
                                                    const TensorSpec& result) const = 0;
};

/// Weight and bias with the map folded in. The first dimension of `weight` is the map's channels;
/// `bias` may be undefined. Computed in float64 and rounded once to the weight's dtype.
std::pair<at::Tensor, at::Tensor> fold_channel_map(const ChannelMap& map, const at::Tensor& weight,
                                                   const at::Tensor& bias);

}  // namespace treadle
