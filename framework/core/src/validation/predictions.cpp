#include <treadle/core/validation/predictions.h>

#include <vector>

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>

#include <treadle/base/error.h>

namespace treadle {

at::Tensor decided(const Prediction& prediction) {
  if (prediction.decision.defined())
    return prediction.decision;
  return prediction.kind == TargetKind::kLabels ? prediction.values.gt(0.5)
                                                : prediction.values.argmax(-1);
}

void append(Prediction& to, const Prediction& more, std::int64_t dimension) {
  std::vector<at::Tensor> others;
  for_each_tensor(more, [&](const at::Tensor& tensor, std::int64_t) { others.push_back(tensor); });
  auto other = others.begin();
  for_each_tensor(to, [&](at::Tensor& tensor, std::int64_t rows) {
    TREADLE_EXPECTS(other != others.end(), "predictions to append have tensors that others lack");
    tensor = at::cat({tensor, *other++}, rows + dimension);
  });
  TREADLE_EXPECTS(other == others.end(), "predictions to append lack tensors that others have");
}

}  // namespace treadle
