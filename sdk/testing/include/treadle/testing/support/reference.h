#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <treadle/core/training/optimizer.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <treadle/testing/training/trained_parameters.h>

/// An Optimizer beside one of libtorch's that does the same:
///
///     EXPECT_TRUE(steps_like_torch(*plugin().make<Optimizer>("sgd"), [](auto parameters) {
///       return torch::optim::SGD(std::move(parameters), torch::optim::SGDOptions(0.01));
///     }));
namespace treadle::testing {

struct ReferenceRun {
  std::uint64_t steps = 1000;
  double learning_rate = 0.01;  ///< the one that libtorch's was made with
  /// After any of the steps. The other order of operations costs some roundings a step.
  Closeness allowed = {.relative = 1e-12, .absolute = 1e-14};
  /// Every seventh step does not reach the second parameter.
  bool leaves_gaps = true;
};

/// Whether `ours` and what `make_torch(parameters)` gives take three parameters the same way, step
/// by step, with the same gradients. Says at which step and in which element they part.
template <typename MakeTorch>
::testing::AssertionResult steps_like_torch(const Optimizer& ours, MakeTorch&& make_torch,
                                            const ReferenceRun& run = {}) {
  TrainedParameters trained(ours);
  std::vector<at::Tensor> theirs;
  for (const at::Tensor& value : trained.values())
    theirs.push_back(value.clone().requires_grad_(true));
  auto torch = make_torch(theirs);

  for (std::uint64_t step = 0; step < run.steps; ++step) {
    auto gradients = TrainedParameters::random_gradients(step);
    if (run.leaves_gaps && step % 7 == 3)
      gradients[1] = at::Tensor();
    for (std::size_t i = 0; i < theirs.size(); ++i)
      theirs[i].mutable_grad() = gradients[i].defined() ? gradients[i].clone() : at::Tensor();
    torch.step();
    trained.step(gradients, run.learning_rate);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const auto result = values_match(trained.value(i), theirs[i], run.allowed);
      if (!result) {
        return ::testing::AssertionFailure()
               << "parameter " << i << " after step " << step + 1 << ": " << result.message();
      }
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace treadle::testing
