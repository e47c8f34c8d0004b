#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/testing/support/tensor_comparison.h>

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
at::Tensor weighted_sum(const std::vector<at::Tensor>& tensors);

/// `value` gives one number, a function of the `inputs` as they are and of nothing that changes.
/// Afterwards they have no gradients.
::testing::AssertionResult gradients_match(const std::function<at::Tensor()>& value,
                                           const std::vector<Differentiated>& inputs,
                                           const GradientCheck& check = {});

}  // namespace treadle::testing
