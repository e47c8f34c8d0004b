#include "linear_map.h"

#include <torch/nn/modules/linear.h>

namespace treadle::softmax {

LinearMap initial_linear(std::int64_t in, std::int64_t out, c10::ScalarType dtype) {
  torch::nn::Linear linear(in, out);
  linear->to(dtype);
  return {linear->weight, linear->bias};
}

}  // namespace treadle::softmax
