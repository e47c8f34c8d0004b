// Parts that are computed again in backward: the gradients of those that are kept.
#include "small_parts.h"

#include <optional>

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::HasSubstr;

/// A layer that counts how often it was called, and draws.
struct Noisy : torch::nn::Module {
  explicit Noisy(int& calls) : torch::nn::Module("Noisy"), calls(calls) {
    linear = register_module("linear", torch::nn::Linear(4, 4));
    linear->to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    return at::dropout(linear->forward(x), 0.5, true);
  }
  int& calls;
  torch::nn::Linear linear{nullptr};
};

struct Result {
  at::Tensor output;
  std::vector<at::Tensor> gradients;
  int calls = 0;
};

Result result_of(bool again, Execution execution = Execution::kDynamic) {
  Result result;
  const TaskRandom random(3);
  const Part body =
      FlowBuilder::from(std::make_shared<Noisy>(result.calls)).through(plus(1)).residual(times(2));
  const auto graph =
      FlowBuilder::from(again ? recompute(body) : body).through(times(3)).build(spec_of({{4}}));
  graph->set_execution(execution);
  const at::Tensor input = at::randn({5, 4}, at::kDouble).set_requires_grad(true);
  result.calls = 0;
  const TaskRandom of_step(4);
  // What is computed again draws from a stream that is seeded by the step's.
  std::optional<TaskRandom> of_part;
  if (!again)
    of_part.emplace(draw_from_task());
  result.output = graph->forward(input);
  result.output.square().sum().backward();
  result.gradients.push_back(input.grad());
  for (const at::Tensor& parameter : graph->parameters())
    result.gradients.push_back(parameter.grad());
  return result;
}

TEST(Recompute, GivesTrueGradientsAndRunsTwice) {
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    const Result again = result_of(true, execution);

    EXPECT_EQ(again.calls, 2);
    ASSERT_EQ(again.gradients.size(), 3U);
    const Result kept = result_of(false);
    EXPECT_EQ(kept.calls, 1);
    EXPECT_TRUE(at::equal(again.output, kept.output));
    for (std::size_t i = 0; i < again.gradients.size(); ++i)
      EXPECT_TRUE(at::equal(again.gradients[i], kept.gradients[i])) << i;
  }
}

TEST(Recompute, WithoutDrawsGivesTheBitsOfWhatIsKept) {
  const auto gradients = [](bool again) {
    const TaskRandom random(3);
    torch::nn::Linear linear(4, 4);
    linear->to(at::kDouble);
    const Part body = FlowBuilder::from(linear).residual(linear).through(
        [](const at::Tensor& x) { return x.tanh(); });
    const auto graph =
        FlowBuilder::from(again ? recompute(body) : body).through(times(3)).build(spec_of({{4}}));
    const at::Tensor input = at::randn({5, 4}, at::kDouble).set_requires_grad(true);
    graph->forward(input).square().sum().backward();
    return std::vector<at::Tensor>{input.grad(), linear->weight.grad(), linear->bias.grad()};
  };
  const auto kept = gradients(false);
  const auto again = gradients(true);

  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(at::equal(again[i], kept[i])) << i;
}

TEST(Recompute, MayStandInAFlowWithoutSizes) {
  const auto twice = [](const Part& body) {
    const auto graph = FlowBuilder::from(recompute(body))
                           .through(recompute(body, RecomputedNames::kOfFlow))
                           .build();
    const at::Tensor input = row({1, 2}).set_requires_grad(true);
    const at::Tensor output = graph->forward(input);
    output.sum().backward();
    EXPECT_EQ(numbers(input.grad()), (std::vector<double>{9, 9}));
    return numbers(output);
  };

  EXPECT_EQ(twice(times(3)), (std::vector<double>{9, 18}));
  EXPECT_EQ(twice(FlowBuilder().residual(times(2)).through(times(1))),
            (std::vector<double>{9, 18}));
}

TEST(Recompute, RefusesStates) {
  const Part body = FlowBuilder::from(state_add()).using_({"memory"}).tag("memory");

  EXPECT_THAT(mistakes(FlowBuilder::from(recompute(body)), spec_of({{4}})),
              HasSubstr("what is computed twice may have no state: it would be a step ahead the "
                        "second time"));
}

}  // namespace
}  // namespace treadle::graph
