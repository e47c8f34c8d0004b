#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/tensor_comparison.h>

/// Whether backward gives the slopes that finite differences give, in float64:
///
///     EXPECT_TRUE(gradients_match([&] { return loss->forward({outputs}, batch).sum; },
///                                 {{"outputs", outputs}}));
///     EXPECT_TRUE(gradients_match([&] { return weighted_sum({model->forward(x)}); },
///                                 parameters_of(*model)));
namespace treadle::testing {

/// A tensor to differentiate by: float64, contiguous. It is changed in place and put back.
struct Differentiated {
  std::string name;
  at::Tensor tensor;
};

struct GradientCheck {
  /// Of the central differences, times the element above 1. Their error is about its square, and
  /// that of rounding about 1e-16 / step.
  double step = 1e-5;
  /// Relative, and absolute below 1.
  double tolerance = 1e-6;
  /// Of each tensor, evenly spread, at most so many elements are checked.
  std::int64_t most_elements = 200;
};

/// All parameters of a module, each once: a tied one by its first name.
template <typename Module>
std::vector<Differentiated> parameters_of(const Module& module) {
  std::vector<Differentiated> all;
  for (const auto& parameter : module.named_parameters()) {
    const bool is_known = std::any_of(all.begin(), all.end(), [&](const Differentiated& one) {
      return one.tensor.is_same(parameter.value());
    });
    if (!is_known)
      all.push_back({parameter.key(), parameter.value()});
  }
  return all;
}

/// One number of several tensors, in which no error of one element is undone by that of another:
/// each counts with a weight of its own.
inline at::Tensor weighted_sum(const std::vector<at::Tensor>& tensors) {
  const TaskRandom random(271828);
  at::Tensor sum;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor part = tensor.mul(at::randn(tensor.sizes(), at::kDouble)).sum();
    sum = sum.defined() ? sum.add(part) : part;
  }
  return sum;
}

/// `value` gives one number, a function of the `inputs` as they are and of nothing that changes.
/// Afterwards they have no gradients.
inline ::testing::AssertionResult gradients_match(const std::function<at::Tensor()>& value,
                                                  const std::vector<Differentiated>& inputs,
                                                  const GradientCheck& check = {}) {
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
