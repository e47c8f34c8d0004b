#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace treadle {

class LayerContext;

/// Is notified when a forward pass of its graph begins.
class BeginsForward {
 public:
  virtual ~BeginsForward();
  /// `rows`: the first dimension of the graph's first input.
  virtual void begin_forward(std::int64_t rows, c10::Device device, LayerContext& context) = 0;
};

}  // namespace treadle
