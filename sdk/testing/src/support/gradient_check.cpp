#include <treadle/testing/support/gradient_check.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace treadle::testing {

at::Tensor weighted_sum(const std::vector<at::Tensor>& tensors) {
  const TaskRandom random(271828);
  at::Tensor sum;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor part = tensor.mul(at::randn(tensor.sizes(), at::kDouble)).sum();
    sum = sum.defined() ? sum.add(part) : part;
  }
  return sum;
}

::testing::AssertionResult gradients_match(const std::function<at::Tensor()>& value,
                                           const std::vector<Differentiated>& inputs,
                                           const GradientCheck& check) {
  for (const Differentiated& input : inputs) {
    TREADLE_EXPECTS(
        input.tensor.scalar_type() == at::kDouble && input.tensor.is_contiguous(),
        "gradients of \"" + input.name + "\" can be checked in float64 and contiguous memory only");
    input.tensor.requires_grad_(true);
    input.tensor.mutable_grad() = at::Tensor();
  }
  value().backward();

  const at::NoGradGuard no_gradients;
  std::int64_t wrong = 0;
  std::ostringstream failures;
  for (const Differentiated& input : inputs) {
    const at::Tensor& tensor = input.tensor;
    const at::Tensor gradient = tensor.grad().defined() ? tensor.grad().contiguous() : at::Tensor();
    double* numbers = tensor.data_ptr<double>();
    const std::int64_t stride =
        std::max<std::int64_t>(1, (tensor.numel() + check.most_elements - 1) / check.most_elements);
    for (std::int64_t i = 0; i < tensor.numel(); i += stride) {
      const double here = numbers[i];
      const double step = check.step * std::max(1.0, std::abs(here));
      numbers[i] = here + step;
      const double above = value().item<double>();
      numbers[i] = here - step;
      const double below = value().item<double>();
      numbers[i] = here;
      const double slope = (above - below) / (2 * step);
      const double got = gradient.defined() ? gradient.data_ptr<double>()[i] : 0;
      if (std::abs(got - slope) <= check.tolerance * std::max(1.0, std::abs(slope)))
        continue;
      constexpr std::int64_t kShown = 5;
      if (++wrong > kShown)
        continue;
      failures << "\"" << input.name << "\" at " << index_text(i, tensor.sizes())
               << ": backward gives ";
      if (gradient.defined())
        failures << got;
      else
        failures << "no gradient";
      failures << ", differences give " << slope << "\n";
    }
    tensor.mutable_grad() = at::Tensor();
  }
  if (wrong == 0)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << failures.str() << wrong << " of the elements looked at have a wrong gradient";
}

}  // namespace treadle::testing
