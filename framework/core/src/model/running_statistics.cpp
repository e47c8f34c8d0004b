#include <treadle/core/model/running_statistics.h>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

namespace treadle {

void RunningStatistics::begin_gathering() {
  const at::NoGradGuard no_gradients;
  // The first batch counts with 1, and 0 times NaN is NaN.
  mean_.zero_();
  var_.fill_(1);
  batches_ = 0;
  is_gathering_ = true;
}

}  // namespace treadle
