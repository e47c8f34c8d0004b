// Compiled graphs give what dynamic ones give, to the last bit, and say what they were made of
// (rows C20-C35).
#include "small_parts.h"

#include <functional>
#include <thread>

#include <ATen/ops/equal.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/plan_ops.h>
#include <treadle/core/task_random.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

/// x Wᵀ + b, which a plan knows.
class Rows final : public Layer, public Planned {
 public:
  Rows(std::int64_t in, std::int64_t out) : linear_(in, out) {
    linear_->to(at::kDouble);
    weight_ = register_parameter("weight", linear_->weight);
    bias_ = register_parameter("bias", linear_->bias);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::linear(inputs[0], weight_, bias_);
  }
  std::optional<PlanValue> plan(PlanBuilder& builder,
                                std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_linear(weight_, bias_), inputs[0]);
  }

 private:
  torch::nn::Linear linear_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// max(0, x), which a plan knows.
class Rectify final : public Layer, public Planned {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0].relu(); }
  std::optional<PlanValue> plan(PlanBuilder& builder,
                                std::span<const PlanValue> inputs) const override {
    return builder.step(ElementStep::kRelu, inputs[0]);
  }
};

Part rows(std::int64_t in, std::int64_t out) {
  return std::make_shared<Rows>(in, out);
}
Part rectify() {
  return std::make_shared<Rectify>();
}

struct Bits {
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> gradients;  // of the input, then of parameters
};

/// Forward and backward from the same random numbers.
Bits bits_of(Graph& graph, const at::Tensor& input) {
  graph.zero_grad();
  const TaskRandom random(7);
  GraphState state(graph);
  const at::Tensor leaf = input.detach().set_requires_grad(true);
  Bits bits;
  bits.outputs = graph.run({&leaf, 1}, state);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const at::Tensor& output : bits.outputs)
    sum = sum.add(output.square().sum());
  sum.backward();
  bits.gradients.push_back(leaf.grad());
  for (const at::Tensor& parameter : graph.parameters())
    bits.gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  return bits;
}

void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (a[i].defined()) {
      EXPECT_TRUE(at::equal(a[i], b[i])) << i << ": " << a[i].sub(b[i]).abs().max();
    }
  }
}

/// Dynamic, compiled as the plan is made, compiled from the plan twice.
void expect_same_bits(Graph& graph, const at::Tensor& input) {
  graph.set_execution(Execution::kDynamic);
  const Bits wanted = bits_of(graph, input);
  graph.set_execution(Execution::kCompiled);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE("compiled, forward " + std::to_string(round + 1));
    const Bits compiled = bits_of(graph, input);
    expect_same(compiled.outputs, wanted.outputs);
    expect_same(compiled.gradients, wanted.gradients);
  }
}

struct Shape {
  std::string name;
  std::function<FlowBuilder()> flow;
};

class Compiled : public ::testing::TestWithParam<Shape> {};

TEST_P(Compiled, GivesTheBitsOfTheDynamicGraph) {
  const TaskRandom random(1);
  const auto graph = GetParam().flow().build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);

  expect_same_bits(*graph, input);
}

TEST_P(Compiled, GivesTheSameWithoutGradients) {
  const TaskRandom random(1);
  const auto graph = GetParam().flow().build(spec_of({{4}}));
  graph->eval();
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const at::NoGradGuard no_gradients;
  const at::Tensor wanted = graph->forward(input);

  graph->set_execution(Execution::kCompiled);
  for (int round = 0; round < 3; ++round)
    EXPECT_TRUE(at::equal(graph->forward(input), wanted)) << round;
}

INSTANTIATE_TEST_SUITE_P(
    Flows, Compiled,
    ::testing::Values(
        Shape{"Mlp",
              [] {
                return FlowBuilder::from(rows(4, 8))
                    .through(rectify())
                    .through(rows(8, 8))
                    .through(rectify())
                    .through(rows(8, 2));
              }},
        Shape{"Residual",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .also(FlowBuilder::from(rows(4, 4)).through(rectify()))
                    .through(rows(4, 2));
              }},
        Shape{"Branches",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .split(
                        {rows(4, 4), FlowBuilder::from(rectify()).through(rows(4, 4)), times(0.5)})
                    .merge(mean())
                    .through(rows(4, 2));
              }},
        Shape{"Products",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .tag("first")
                    .split({rows(4, 4), rows(4, 4)})
                    .merge(multiply())
                    .through(add())
                    .using_({"first"})
                    .through(rectify());
              }},
        Shape{"Joined",
              [] {
                return FlowBuilder::from(rectify())
                    .split({rows(4, 3), rows(4, 2)})
                    .merge(cat(1))
                    .through(rows(5, 1));
              }},
        Shape{"Loop",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .loop(FlowBuilder::from(rows(4, 4)).through(rectify()))
                    .times(3)
                    .through(rows(4, 1));
              }},
        Shape{"LoopOfCalls",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .loop(FlowBuilder::from(std::make_shared<Scale>(0.5)).through(plus(1)))
                    .times(3)
                    .through(rows(4, 1));
              }},
        Shape{"Gate",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .gate(softmax_router(4, 2), {rows(4, 3), rows(4, 3)});
              }},
        Shape{"Slices",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .map(rows(2, 3))
                    .batched()
                    .slices(2)
                    .through(rectify());
              }},
        Shape{
            "Pieces",
            [] { return FlowBuilder::from(rows(4, 4)).map(rows(4, 3)).each().through(rectify()); }},
        Shape{"WhileLoop",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .loop(times(2))
                    .until(threshold_halt(8), 5)
                    .through(rectify());
              }},
        Shape{"Switch",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .switch_(fixed_selector(1), {rows(4, 3), rows(4, 3)});
              }},
        Shape{"Reshapes",
              [] {
                return FlowBuilder::from(rows(4, 6))
                    .through(reshape({-1, 2, 3}))
                    .through(rectify())
                    .through(reshape({-1, 6}))
                    .through(rows(6, 1));
              }},
        Shape{"CallsBetween",
              [] {
                return FlowBuilder::from(times(2))
                    .through(rows(4, 4))
                    .through([](const at::Tensor& x) { return x.t(); })
                    .through([](const at::Tensor& x) { return x.t().tanh(); })
                    .through(rectify())
                    .through(rows(4, 2));
              }},
        Shape{"OnlyAView", [] { return FlowBuilder::from(identity()); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace treadle::graph
