// Compiled graphs give what dynamic ones give, to the last bit, and say what they were made of
//.
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

#include "pass.h"
#include "planned_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::HasSubstr;

struct Bits {
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> gradients;  // of the input, then of parameters
};

/// Forward and backward from the same random numbers.
Bits bits_of(Graph& graph, const at::Tensor& input, bool input_needs_gradient = true) {
  forget_gradients(graph);
  const TaskRandom random(7);
  GraphState state(graph);
  const at::Tensor leaf = input.detach().set_requires_grad(input_needs_gradient);
  Bits bits;
  bits.outputs = graph.run({&leaf, 1}, state);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const at::Tensor& output : bits.outputs)
    sum = sum.add(output.square().sum());
  if (sum.requires_grad())
    sum.backward();
  bits.gradients.push_back(leaf.grad());
  const std::vector<at::Tensor> of_parameters = gradients_of(graph);
  bits.gradients.insert(bits.gradients.end(), of_parameters.begin(), of_parameters.end());
  return bits;
}

/// Dynamic, compiled as the plan is made, compiled from the plan twice; branches one by one and at
/// once.
void expect_same_bits(Graph& graph, const at::Tensor& input, bool input_needs_gradient = true) {
  graph.set_execution(Execution::kDynamic);
  graph.set_branches(Branches::kSequential);
  const Bits wanted = bits_of(graph, input, input_needs_gradient);
  graph.set_execution(Execution::kCompiled);
  for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
    graph.set_branches(branches);
    for (int round = 0; round < 3; ++round) {
      SCOPED_TRACE("compiled, forward " + std::to_string(round + 1) +
                   (branches == Branches::kParallel ? ", branches at once" : ""));
      const Bits compiled = bits_of(graph, input, input_needs_gradient);
      expect_same(compiled.outputs, wanted.outputs);
      expect_same(compiled.gradients, wanted.gradients);
    }
  }
}

at::Tensor silu(const at::Tensor& x) {
  return at::silu(x);
}

/// Its input is used twice.
at::Tensor swish(const at::Tensor& x) {
  return x.mul(x.sigmoid()).div(3);
}

/// So is its reference.
struct MixedIn : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x, const at::Tensor& reference) const {
    return x.add(swish(reference)).mul(reference.tanh());
  }
};

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
  // As a model's first layers are called: only parameters have gradients.
  expect_same_bits(*graph, input, /*input_needs_gradient=*/false);
}

TEST_P(Compiled, GivesTheSameWithoutGradients) {
  const TaskRandom random(1);
  const auto graph = GetParam().flow().build(spec_of({{4}}));
  graph->eval();
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const at::NoGradGuard no_gradients;
  const at::Tensor wanted = graph->forward(input);

  graph->set_execution(Execution::kCompiled);
  for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
    graph->set_branches(branches);
    for (int round = 0; round < 3; ++round)
      EXPECT_TRUE(at::equal(graph->forward(input), wanted)) << round;
  }
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
                    .residual(FlowBuilder::from(rows(4, 4)).through(rectify()))
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
        // What is tagged is handed out, and no gradient comes back for it.
        Shape{"ProductsSeen",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .split({rows(4, 4), rows(4, 4)})
                    .merge(multiply())
                    .tag("product")
                    .through(rows(4, 2));
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
        Shape{"MixtureOfExperts",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .mixture_of_experts(softmax_router(4, 2), {rows(4, 3), rows(4, 3)});
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
        // Kernels that round otherwise at the end of a row than within it.
        Shape{"JoinedCalls",
              [] {
                return FlowBuilder::from(rows(4, 7))
                    .split({FlowBuilder::from(rows(7, 5)).through(silu), rectify()})
                    .merge(cat(1))
                    .through(rows(12, 2));
              }},
        Shape{"OtherOrdersOfDimensions",
              [] {
                return FlowBuilder::from(rows(4, 60))
                    .through([](const at::Tensor& x) {
                      return x.reshape({-1, 20, 3}).transpose(1, 2);
                    })
                    .through(rectify())
                    .through([](const at::Tensor& x) { return x.div(x.square().sum(-1, true)); })
                    .through([](const at::Tensor& x) { return x.transpose(1, 2).flatten(1); })
                    .through(rectify())
                    .through(silu)
                    .through([](const at::Tensor& x) { return x.mean(1, /*keepdim=*/true); })
                    .through(silu);
              }},
        // Gradients of one value, of several uses within a call, and of others.
        Shape{"UsedTwiceBesideOthers",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .tag("first")
                    .residual(swish)
                    .residual(swish)
                    .through([](const at::Tensor& x) { return swish(swish(x)); });
              }},
        Shape{"ReferenceUsedInRounds",
              [] {
                return FlowBuilder::from(rows(4, 4))
                    .tag("first")
                    .through(rows(4, 4))
                    .loop(std::make_shared<MixedIn>())
                    .times(3)
                    .using_({"first"})
                    .through(add())
                    .using_({"first"});
              }},
        Shape{"ComputedAgain",
              [] {
                const auto again = [] {
                  return recompute(FlowBuilder::from(rows(4, 4)).through(silu));
                };
                return FlowBuilder::from(rectify())
                    .split({again(), rows(4, 4)})
                    .merge(add())
                    .loop(again())
                    .times(2);
              }},
        Shape{"OnlyAView", [] { return FlowBuilder::from(identity()); }}),
    [](const auto& info) { return info.param.name; });

TEST(CompiledGraph, HasAPlanForEachSizeOfBatch) {  // per-shape cache
  const auto graph = mlp().build(spec_of({{4}}));
  for (const std::int64_t size : {6, 3, 1, 6, 3})
    expect_same_bits(*graph, at::randn({size, 4}, at::kDouble));
}

TEST(CompiledGraph, FollowsWeightsThatChangeFreezeAndMove) {
  const auto graph = mlp().build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  graph->set_execution(Execution::kCompiled);
  bits_of(*graph, input);
  {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : graph->parameters())
      parameter.mul_(0.5);
  }
  expect_same_bits(*graph, input);

  graph->set_execution(Execution::kCompiled);
  bits_of(*graph, input);
  graph->parameters()[2].set_requires_grad(false);
  const Bits frozen = bits_of(*graph, input);
  EXPECT_FALSE(frozen.gradients[3].defined());
  EXPECT_TRUE(frozen.gradients[2].defined());

  for (at::Tensor& parameter : graph->parameters())
    parameter.set_data(parameter.detach().clone());
  const Bits moved = bits_of(*graph, input);
  expect_same(moved.outputs, frozen.outputs);
  expect_same(moved.gradients, frozen.gradients);
}

/// A plan is made in the first run, whose rows may all have gone where nothing is trained.
TEST(CompiledGraph, TrainsTheBranchThatTheFirstRunDidNotChoose) {
  const TaskRandom random(1);
  torch::nn::Linear frozen(4, 4);
  frozen->to(at::kDouble);
  for (at::Tensor& parameter : frozen->parameters())
    parameter.set_requires_grad(false);
  const auto by_sign = [](const at::Tensor& x) { return x.sum().lt(0).to(at::kLong); };
  const auto graph = FlowBuilder::from(identity())
                         .switch_(by_sign, {frozen, rows(4, 4)})
                         .through(rows(4, 2))
                         .build(spec_of({{4}}));
  const at::Tensor input = at::rand({6, 4}, at::kDouble);
  const std::vector<at::Tensor> inputs{input, input.neg(), input};
  std::vector<Bits> wanted;
  for (const at::Tensor& each : inputs)
    wanted.push_back(bits_of(*graph, each, /*input_needs_gradient=*/false));
  ASSERT_FALSE(wanted[0].gradients[3].defined());
  ASSERT_TRUE(wanted[1].gradients[3].defined());

  graph->set_execution(Execution::kCompiled);

  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE(i);
    const Bits compiled = bits_of(*graph, inputs[i], /*input_needs_gradient=*/false);
    expect_same(compiled.outputs, wanted[i].outputs);
    expect_same(compiled.gradients, wanted[i].gradients);
  }
}

std::vector<at::Tensor> gradients_of_two_backwards(Graph& graph, const at::Tensor& input) {
  forget_gradients(graph);
  for (int i = 0; i < 2; ++i)
    graph.forward(input).square().sum().backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : graph.parameters())
    gradients.push_back(parameter.grad().clone());
  return gradients;
}

TEST(CompiledGraph, AddsToGradientsThatAreThere) {
  const TaskRandom random(1);
  const at::Tensor input = at::randn({600, 4}, at::kDouble);
  torch::nn::Linear unknown_to_plans(4, 4);
  unknown_to_plans->to(at::kDouble);
  const std::vector<FlowBuilder> flows{
      mlp(),
      // A weight that is used three times, as an operation and as a call.
      FlowBuilder::from(rows(4, 4)).loop(FlowBuilder::from(rows(4, 4)).through(rectify())).times(3),
      FlowBuilder::from(rows(4, 4)).loop(unknown_to_plans).times(3)};
  for (std::size_t i = 0; i < flows.size(); ++i) {
    SCOPED_TRACE(i);
    const auto graph = flows[i].build(spec_of({{4}}));
    const auto wanted = gradients_of_two_backwards(*graph, input);

    graph->set_execution(Execution::kCompiled);

    expect_same(gradients_of_two_backwards(*graph, input), wanted);
    expect_same(gradients_of_two_backwards(*graph, input), wanted);
  }
}

/// A product over many rows is summed in blocks: adding one to another is not the same as going on.
TEST(CompiledGraph, GivesTheBitsOfTheDynamicGraphForManyRows) {
  const TaskRandom random(1);
  const auto graph =
      FlowBuilder::from(rows(4, 4))
          .loop(FlowBuilder::from(rows(4, 4)).through(rectify()))
          .times(3)
          .split({rows(4, 4), FlowBuilder::from(rows(4, 4)).loop(rows(4, 4)).times(2)})
          .merge(add())
          .build(spec_of({{4}}));

  expect_same_bits(*graph, at::randn({700, 4}, at::kDouble));
}

/// Uses its weight twice, in a way that plans do not know.
struct TwiceImpl : torch::nn::Module {
  explicit TwiceImpl(torch::nn::Linear shared)
      : linear(register_module("linear", std::move(shared))) {}
  at::Tensor forward(const at::Tensor& input) { return linear(linear(input).relu()); }
  torch::nn::Linear linear;
};
TORCH_MODULE(Twice);

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double off = a[i].sub(b[i]).abs().max().item<double>();
    EXPECT_LE(off, 1e-14 * b[i].abs().max().item<double>()) << i;
  }
}

TEST(CompiledGraph, GivesTheBitsOfTheDynamicGraphWhereACallUsesAWeightTwiceAndOthersDo) {
  const TaskRandom random(1);
  torch::nn::Linear shared(4, 4);
  shared->to(at::kDouble);
  const std::vector<FlowBuilder> flows{
      FlowBuilder::from(shared).through(Twice(shared)).through(shared),
      FlowBuilder::from(rows(4, 4)).loop(Twice(shared)).times(3)};
  for (const FlowBuilder& flow : flows)
    expect_same_bits(*flow.build(spec_of({{4}})), at::randn({700, 4}, at::kDouble));
}

/// The sum that docs/decisions/0012 takes out: its order is another, and nothing else.
TEST(CompiledGraph, AddsInAnotherOrderWhereAStateCarriesAWeightOnTopOfGradients) {
  const TaskRandom random(1);
  const auto graph = FlowBuilder::from(rows(4, 4))
                         .through(state_add())
                         .using_({"memory"})
                         .through(rows(4, 4))
                         .tag("memory")
                         .build(spec_of({{4}}));
  const at::Tensor input = at::randn({700, 4}, at::kDouble);
  const auto gradients = [&] {
    forget_gradients(*graph);
    for (int batch = 0; batch < 2; ++batch) {
      GraphState state(*graph);
      at::Tensor sum = at::zeros({}, at::kDouble);
      for (int step = 0; step < 3; ++step)
        sum = sum.add(graph->run({&input, 1}, state)[0].square().sum());
      sum.backward();
    }
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : graph->parameters())
      all.push_back(parameter.grad().clone());
    return all;
  };
  const auto wanted = gradients();

  graph->set_execution(Execution::kCompiled);

  expect_close(gradients(), wanted);
  expect_close(gradients(), wanted);
}

TEST(CompiledGraph, GivesGradientsToWhoAsksForThem) {
  const auto graph = mlp().build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const auto asked = [&] {
    return torch::autograd::grad({graph->forward(input).sum()}, graph->parameters());
  };
  const auto wanted = asked();

  graph->set_execution(Execution::kCompiled);
  const auto compiled = asked();

  expect_same(compiled, wanted);
  EXPECT_FALSE(graph->parameters()[0].grad().defined()) << "nothing is added";
}

TEST(CompiledGraph, LeavesWhatBackwardDoesNotReachWithoutAGradient) {
  const auto graph = FlowBuilder::from(rows(4, 4))
                         .tag("one")
                         .through(rows(4, 3))
                         .tag("other")
                         .outputs({"one", "other"})
                         .build(spec_of({{4}}));
  graph->set_execution(Execution::kCompiled);
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  for (int round = 0; round < 2; ++round) {
    forget_gradients(*graph);
    GraphState state(*graph);
    graph->run({&input, 1}, state)[0].sum().backward();

    EXPECT_TRUE(graph->parameters()[0].grad().defined());
    EXPECT_FALSE(graph->parameters()[2].grad().defined());
  }
}

/// Optimizers pass over parameters whose gradients nobody wrote: the arena counts writes.
TEST(CompiledGraph, WritesOnlyGradientsThatADynamicOneWrites) {
  const TaskRandom random(1);
  const auto graph =
      FlowBuilder::from(rows(4, 4))
          .loop(FlowBuilder().switch_(argmax_selector(4, 2), {rows(4, 4), rows(4, 4)}))
          .times(3)
          .build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const auto written = [&] {
    std::vector<bool> is_written;
    for (const at::Tensor& parameter : graph->parameters())
      parameter.mutable_grad() = at::zeros_like(parameter);
    graph->forward(input).square().sum().backward();
    for (const at::Tensor& parameter : graph->parameters())
      is_written.push_back(parameter.grad()._version() > 0);
    return is_written;
  };
  const std::vector<bool> wanted = written();
  ASSERT_THAT(wanted, ::testing::AllOf(::testing::Contains(true), ::testing::Contains(false)));

  graph->set_execution(Execution::kCompiled);

  EXPECT_EQ(written(), wanted);
  EXPECT_EQ(written(), wanted);
}

TEST(CompiledGraph, RefusesASecondBackwardAndGradientsOfGradients) {
  const auto graph = mlp().build(spec_of({{4}}));
  graph->set_execution(Execution::kCompiled);
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const auto what = [](const std::function<void()>& work) -> std::string {
    try {
      work();
    } catch (const TrainingError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };

  const at::Tensor sum = graph->forward(input).sum();
  sum.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(
      what([&] { sum.backward(); }),
      "backward through a compiled graph a second time: what it needs lies in memory that has "
      "been used again; run forward once more, or use \"execution\": \"dynamic\"");
  EXPECT_EQ(what([&] {
              graph->forward(input).sum().backward({}, /*retain_graph=*/true,
                                                   /*create_graph=*/true);
            }),
            "a compiled graph has no gradients of gradients; use \"execution\": \"dynamic\"");
}

TEST(CompiledGraph, OutputsAreTheCallersToKeep) {
  const auto graph = mlp().build(spec_of({{4}}));
  graph->set_execution(Execution::kCompiled);
  const at::NoGradGuard no_gradients;
  graph->forward(at::randn({6, 4}, at::kDouble));
  const at::Tensor first = graph->forward(at::ones({6, 4}, at::kDouble));
  const at::Tensor copy = first.clone();

  graph->forward(at::randn({6, 4}, at::kDouble));

  EXPECT_TRUE(at::equal(first, copy));
}

TEST(CompiledGraph, MayRunOnSeveralThreads) {
  const auto graph = mlp().build(spec_of({{4}}));
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> wanted;
  const at::NoGradGuard no_gradients;
  for (std::int64_t size = 1; size <= 4; ++size) {
    inputs.push_back(at::randn({size, 4}, at::kDouble));
    wanted.push_back(graph->forward(inputs.back()));
  }
  graph->set_execution(Execution::kCompiled);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const at::NoGradGuard no_recording;
      for (std::size_t i = 0; i < 50; ++i) {
        const std::size_t which = (thread + i) % inputs.size();
        wrong += at::equal(graph->forward(inputs[which]), wanted[which]) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_EQ(wrong, 0);
}

TEST(CompiledGraph, KeepsStatesAndTagsAsADynamicOne) {
  const auto graph = FlowBuilder::from(rows(4, 4))
                         .tag("first")
                         .through(state_add())
                         .using_({"memory"})
                         .through(rectify())
                         .tag("memory")
                         .through(rows(4, 2))
                         .build(spec_of({{4}}));
  const auto three = [&] {
    forget_gradients(*graph);
    GraphState state(*graph);
    std::vector<at::Tensor> seen;
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (const int step : {1, 2, 3}) {
      const at::Tensor input = at::ones({3, 4}, at::kDouble).mul(step);
      sum = sum.add(graph->run({&input, 1}, state)[0].square().sum());
      seen.push_back(state.tagged("first"));
      seen.push_back(state.tagged("memory"));
      if (step == 2)
        state.detach();
    }
    sum.backward();
    for (const at::Tensor& parameter : graph->parameters())
      seen.push_back(parameter.grad().clone());
    return seen;
  };
  const auto wanted = three();

  graph->set_execution(Execution::kCompiled);
  const auto compiled = three();

  ASSERT_EQ(compiled.size(), wanted.size());
  expect_same(compiled, wanted);
}

/// The running sum of what it was given, x_1 + x_2 / 2 + …, from call to call.
class RunningSum : public Layer {
 public:
  RunningSum() : Layer("running_sum") {}
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    at::Tensor sum = inputs[0];
    if (context.state().has_tensor("sum"))
      sum = sum.add(context.state().tensor("sum").div(2));
    context.state().put("sum", sum);
    return sum.sin();
  }
};

class SaysThatItRemembers final : public RunningSum, public KeepsState {};

TEST(CompiledGraph, CallsALoopWhoseBodyRemembersAsOne) {
  const TaskRandom random(1);
  const Part state =
      FlowBuilder::from(rows(4, 4)).through(state_add()).using_({"sum"}).tag("sum").through(silu);
  const std::vector<Part> bodies{state, std::make_shared<SaysThatItRemembers>(),
                                 FlowBuilder::from(silu).through(state)};
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    SCOPED_TRACE(i);
    const auto graph = FlowBuilder::from(rows(4, 4)).loop(bodies[i]).times(3).build(spec_of({{4}}));
    const at::Tensor input = at::randn({6, 4}, at::kDouble);

    expect_same_bits(*graph, input);

    const plan::Plan plan = graph->compile({&input, 1});
    ASSERT_EQ(plan.calls().size(), 1U);
    EXPECT_EQ(plan.calls()[0].why, "its body keeps state between rounds");
  }
}

TEST(CompiledGraph, RefusesAStatefulLayerThatDoesNotDeriveFromKeepsState) {
  const TaskRandom random(1);
  const auto graph = FlowBuilder::from(rows(4, 4))
                         .loop(std::make_shared<RunningSum>())
                         .times(2)
                         .build(spec_of({{4}}));
  graph->set_execution(Execution::kCompiled);
  try {
    graph->forward(at::randn({6, 4}, at::kDouble));
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_EQ(std::string(error.what()),
              "in node \"loop_0\", round 1: a layer left a tensor for the next round, but does not "
              "derive from treadle::KeepsState");
  }
}

TEST(CompiledGraph, FailsInTheSameWords) {
  const auto graph = FlowBuilder::from(rows(4, 4))
                         .named("first")
                         .loop([](const at::Tensor& x) {
                           if (x.numel() > 16)
                             throw std::runtime_error("too much");
                           return x.mul(2);
                         })
                         .times(2)
                         .named("refine")
                         .through(rows(4, 1))
                         .build();
  const auto words = [&](std::int64_t rows) -> std::string {
    const at::Tensor input = at::ones({rows, 4}, at::kDouble);
    try {
      graph->forward(input);
    } catch (const TrainingError& error) {
      return error.what();
    }
    return "";
  };
  const std::string wanted = words(6);
  ASSERT_NE(wanted, "");

  graph->set_execution(Execution::kCompiled);

  EXPECT_EQ(words(6), wanted);
  EXPECT_EQ(words(2), "");
  EXPECT_EQ(words(6), wanted);
}

TEST(CompiledGraph, FailsInTheSameWordsWhereThePlanIsKnown) {
  bool fails = false;
  const auto graph = FlowBuilder::from(rows(4, 4))
                         .loop([&fails](const at::Tensor& x) {
                           if (fails)
                             throw std::runtime_error("no more");
                           return x.mul(2);
                         })
                         .times(2)
                         .named("refine")
                         .build();
  const at::Tensor input = at::ones({3, 4}, at::kDouble);
  const auto words = [&](Execution execution) -> std::string {
    graph->set_execution(execution);
    fails = false;
    graph->forward(input);
    fails = true;
    try {
      graph->forward(input);
    } catch (const TrainingError& error) {
      return error.what();
    }
    return "";
  };
  const std::string wanted = words(Execution::kDynamic);
  ASSERT_THAT(wanted, HasSubstr("no more"));

  EXPECT_EQ(words(Execution::kCompiled), wanted);
}

/// Rows whose first number is positive.
at::Tensor positive_rows(const at::Tensor& x) {
  return x.index_select(0, x.select(1, 0).gt(0).nonzero().reshape({-1}));
}

TEST(CompiledGraph, SaysWhichNodeGaveOtherSizesThanThePlanWasMadeFor) {
  for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
    const auto graph =
        FlowBuilder().split({&positive_rows, FlowBuilder::from(times(1))}).merge(cat(0)).build();
    graph->set_execution(Execution::kCompiled);
    graph->set_branches(branches);
    const at::Tensor both = at::ones({2, 4}, at::kDouble);
    at::Tensor one = both.clone();
    one[0].neg_();
    graph->forward(both);
    try {
      graph->forward(one);
      ADD_FAILURE();
    } catch (const TrainingError& error) {
      EXPECT_STREQ(error.what(),
                   "node \"Function_0\" (Function) failed on [2, 4] from \"input\": it gave [1, 4] "
                   "where a plan was made for [2, 4]; sizes that depend on numbers need "
                   "\"execution\": \"dynamic\"");
    }
  }
}

TEST(CompiledGraph, AStopEndsIt) {
  const auto graph = mlp().build(spec_of({{4}}));
  graph->set_execution(Execution::kCompiled);
  const at::Tensor input = at::ones({2, 4}, at::kDouble);
  GraphState state(*graph);
  graph->run({&input, 1}, state);
  std::stop_source stop;
  stop.request_stop();

  EXPECT_THROW(graph->run({&input, 1}, state, stop.get_token()), Interrupted);
  EXPECT_NO_THROW(graph->run({&input, 1}, state));
}

TEST(CompiledGraph, IsProfiledNodeByNode) {
  const auto graph = mlp().build(spec_of({{4}}));
  graph->set_execution(Execution::kCompiled);
  const at::Tensor input = at::ones({2, 4}, at::kDouble);
  GraphState state(*graph);
  graph->run({&input, 1}, state);
  state.profile(true);

  graph->run({&input, 1}, state);

  ASSERT_NE(state.last_profile(), nullptr);
  EXPECT_EQ(state.last_profile()->nodes.size(), 5U);
}

/// A sum that no plan knows.
struct Sum : torch::nn::Module {
  at::Tensor forward(const at::Tensor& a, const at::Tensor& b) const { return a.add(b); }
};

TEST(CompiledGraph, IsProfiledWhereBranchesRunAtOnce) {
  constexpr std::chrono::milliseconds kNap(5);
  const Part sleeps = [=](const at::Tensor& x) {
    std::this_thread::sleep_for(kNap);
    return x.mul(1);
  };
  const auto within = FlowBuilder().split({sleeps, sleeps}).merge(add()).build();
  within->set_branches(Branches::kParallel);
  const auto graph = FlowBuilder()
                         .split({sleeps, sleeps})
                         .merge(std::make_shared<Sum>())
                         .through(sleeps)
                         .loop(within)
                         .times(2)
                         .build();
  graph->set_branches(Branches::kParallel);
  graph->set_execution(Execution::kCompiled);
  const at::Tensor input = at::ones({2, 4}, at::kDouble);
  GraphState state(*graph);
  graph->run({&input, 1}, state);
  state.profile(true);

  graph->run({&input, 1}, state);

  const Profile& profile = *state.last_profile();
  ASSERT_EQ(profile.nodes.size(), 5U);
  const auto at_least = [](std::chrono::nanoseconds least) {
    return ::testing::AllOf(::testing::Ge(least), ::testing::Le(std::chrono::seconds(60)));
  };
  EXPECT_THAT(profile.nodes[0].duration, at_least(kNap));
  EXPECT_THAT(profile.nodes[1].duration, at_least(kNap));
  EXPECT_THAT(profile.nodes[3].duration, at_least(kNap));
  EXPECT_THAT(profile.nodes[4].duration, at_least(2 * kNap));
  for (const LevelTiming& level : profile.levels)
    EXPECT_THAT(level.wall_clock, ::testing::Le(std::chrono::seconds(60))) << level.index;
}

TEST(CompiledGraph, OfTenThousandNodesIsPlannedInASecondOrTwo) {
  FlowBuilder flow = FlowBuilder::from(rectify());
  for (int i = 1; i < 10'000; ++i)
    flow.through(rectify());
  const auto graph = flow.build(spec_of({{4}}));
  const at::Tensor input = at::randn({2, 4}, at::kDouble).set_requires_grad(true);

  const plan::Plan plan = graph->compile({&input, 1});

  EXPECT_EQ(plan.elementwise_ops(), 20'000U);
  expect_same_bits(*graph, input);
}

}  // namespace
}  // namespace treadle::graph
