#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>

#include <treadle/core/plan_op.h>

/// What lets a plan for inference, whose weights stay as they are, compute less: operations whose
/// constants can be a part of another's weights.
namespace treadle {

/// y = scale · x + shift, with numbers of its own for each index of a dimension.
struct ChannelMap {
  std::int64_t dim = 1;
  at::Tensor scale;  ///< [channels], float64
  at::Tensor shift;  ///< [channels], float64
};

/// An operation that may be such a map. Found by dynamic_cast of a PlanOp.
class MapsChannels {
 public:
  virtual ~MapsChannels();
  /// Made of present weights, up to rounding what forward() computes; nothing where forward() looks
  /// at more than one number at a time.
  virtual std::optional<ChannelMap> channel_map() const = 0;
};

/// An operation whose weights can take such a map in. Found by dynamic_cast of a PlanOp.
class TakesChannelMap {
 public:
  virtual ~TakesChannelMap();
  /// One operation for this and then the map, up to rounding. Null where the map's dimension is not
  /// that of this operation's channels. `result`: what this operation gives, and the map takes. It
  /// keeps() what this one does.
  virtual std::shared_ptr<const PlanOp> followed_by(const ChannelMap& map,
                                                    const TensorSpec& result) const = 0;
};

/// Weights, whose first dimension is the map's channels, and bias (may be undefined) with a map
/// taken in. Computed in float64, and rounded once to the weights' dtype.
std::pair<at::Tensor, at::Tensor> fold(const ChannelMap& map, const at::Tensor& weight,
                                       const at::Tensor& bias);

}  // namespace treadle
