#include <treadle/core/batch.h>

namespace treadle {

Batch Batch::slice(std::int64_t begin, std::int64_t count) const {
  const auto cut = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  Batch part;
  part.inputs.reserve(inputs.size());
  for (const at::Tensor& input : inputs)
    part.inputs.push_back(cut(input));
  part.targets = cut(targets);
  part.original_targets = original_targets.is_same(targets) ? part.targets : cut(original_targets);
  part.weights = cut(weights);
  part.rows = cut(rows);
  return part;
}

}  // namespace treadle
