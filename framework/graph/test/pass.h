#pragma once

#include <cstddef>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/graph/graph.h>
#include <treadle/tensor/task_random.h>

/// A forward and a backward of a graph, and whether two of them are the same.
namespace treadle::graph::testing {

/// `work` where so many threads may take part, however many cores there are.
template <typename Work>
void with_threads(int threads, Work&& work) {
  const oneapi::tbb::global_control allowed(oneapi::tbb::global_control::max_allowed_parallelism,
                                            static_cast<std::size_t>(threads));
  oneapi::tbb::task_arena arena(threads);
  arena.execute(work);
}

/// What is undefined has no gradient.
struct Pass {
  at::Tensor output;
  at::Tensor input_gradient;
  std::vector<at::Tensor> gradients;
};

inline void forget_gradients(Graph& graph) {
  for (at::Tensor& parameter : graph.parameters())
    parameter.mutable_grad().reset();
}

inline std::vector<at::Tensor> gradients_of(const Graph& graph) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : graph.parameters())
    gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  return gradients;
}

inline Pass pass_through(Graph& graph, Branches branches) {
  graph.set_branches(branches);
  forget_gradients(graph);
  const TaskRandom random(17);
  const at::Tensor input = at::randn({5, 6}, at::kDouble).set_requires_grad(true);
  Pass pass;
  pass.output = graph.forward(input);
  pass.output.square().sum().backward();
  pass.input_gradient = input.grad().clone();
  pass.gradients = gradients_of(graph);
  return pass;
}

inline void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (a[i].defined()) {
      EXPECT_TRUE(at::equal(a[i], b[i])) << i << ": " << a[i].sub(b[i]).abs().max();
    }
  }
}

inline void expect_same(const Pass& a, const Pass& b) {
  EXPECT_TRUE(at::equal(a.output, b.output));
  EXPECT_TRUE(at::equal(a.input_gradient, b.input_gradient));
  expect_same(a.gradients, b.gradients);
}

}  // namespace treadle::graph::testing
