#pragma once

#include <ATen/core/Tensor.h>

namespace treadle {

/// Records a value of each round of a loop.
class Traced {
 public:
  virtual ~Traced();
  /// `state`: the output of the round, or the input of the first.
  virtual at::Tensor trace(const at::Tensor& state) const = 0;
};

}  // namespace treadle
