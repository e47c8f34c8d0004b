#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/model.h>

namespace treadle {

class LayerContext;

/// Computes with one weight, a matrix or a kernel, for which another tensor of its sizes may stand:
/// what `weight_norm` makes of it.
class TakesWeight {
 public:
  virtual ~TakesWeight();
  /// A parameter of the layer, which forward() uses.
  virtual const at::Tensor& own_weight() const = 0;
  /// forward() with `weight` in place of own_weight(), and a gradient for it.
  virtual at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                                  LayerContext& context) = 0;
  /// Which dimension of the weight is that of the layer's outputs.
  virtual std::int64_t output_dim() const { return 0; }
};

}  // namespace treadle
