// Gradients through one step of time: wherever a state passes from one step to
// the next, it passes as a number. Compared with sums written by hand, in which the state is
// detached between steps, on every way that a graph runs.
#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>

#include <treadle/core/training/gradient_strategy.h>
#include <treadle/tensor/task_random.h>

#include "compile/planned_parts.h"
#include "pass.h"

namespace treadle::graph::truncated_bptt_tests {
namespace {

using namespace testing;
using Tensors = std::vector<at::Tensor>;

/// What one step hands to the next: the state itself, or a number.
using HandOn = at::Tensor (*)(const at::Tensor& state);

at::Tensor whole(const at::Tensor& state) {
  return state;
}
at::Tensor cut(const at::Tensor& state) {
  return state.detach();
}

at::Tensor tanh_of(const at::Tensor& x) {
  return x.tanh();
}

struct Recurrence {
  std::string name;
  std::function<FlowBuilder()> flow;
  /// The same for one stream of batches. `w`: the graph's parameters, in their order.
  std::function<Tensors(const Tensors& w, const Tensors& batches, HandOn hand_on)> by_hand;
  std::size_t batches = 1;
  /// What a plan's calls carry from forward to forward is a number in any case.
  bool is_carried_by_calls = false;
};

void PrintTo(const Recurrence& one, std::ostream* out) {
  *out << one.name;
}

/// The `i`-th layer of rows().
at::Tensor affine(const Tensors& w, std::size_t i, const at::Tensor& x) {
  return at::linear(x, w[2 * i], w[2 * i + 1]);
}

/// A stream's x_1 + x_2 / 2 + …, which the layer carries.
class Discounting final : public Layer, public KeepsState {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    at::Tensor sum = inputs[0];
    if (context.state().has_part("within"))
      sum = sum.add(context.state().part("within").tensor("sum").div(2));
    StateDict within;
    within.put("sum", sum);
    context.state().put("within", std::move(within));
    return sum.sin();
  }
};

FlowBuilder one_round() {
  return FlowBuilder::from(rows(4, 4)).through(tanh_of);
}

FlowBuilder step_with_state() {
  return FlowBuilder::from(rows(4, 4)).through(state_add()).using_({"h"}).through(tanh_of).tag("h");
}

/// Layer, loop of three rounds, layer.
Tensors three_rounds(const Tensors& w, const Tensors& batches, HandOn hand_on) {
  at::Tensor state = affine(w, 0, batches[0]);
  for (int round = 0; round < 3; ++round)
    state = affine(w, 1, round == 0 ? state : hand_on(state)).tanh();
  return {affine(w, 2, state)};
}

/// step_with_state() once for each batch, behind a layer.
Tensors state_of_batches(const Tensors& w, const Tensors& batches, HandOn hand_on) {
  Tensors results;
  at::Tensor state;
  for (const at::Tensor& batch : batches) {
    at::Tensor sum = affine(w, 1, affine(w, 0, batch));
    if (state.defined())
      sum = sum.add(hand_on(state));
    state = sum.tanh();
    results.push_back(state);
  }
  return results;
}

std::vector<Recurrence> recurrences() {
  return {
      {"Loop",
       [] { return FlowBuilder::from(rows(4, 4)).loop(one_round()).times(3).through(rows(4, 2)); },
       three_rounds},
      {"LoopOfOperations",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .loop(FlowBuilder::from(rows(4, 4)).through(rectify()))
             .times(3)
             .through(rectify())
             .through(rows(4, 2));
       },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         at::Tensor state = affine(w, 0, batches[0]);
         for (int round = 0; round < 3; ++round)
           state = affine(w, 1, round == 0 ? state : hand_on(state)).relu();
         return {affine(w, 2, state.relu())};
       }},
      {"LoopOfElements",  // one kernel of a plan, with an end of gradients within
       [] {
         return FlowBuilder::from(rows(4, 4))
             .tag("x")
             .loop(FlowBuilder().input({"x"}).through(rectify()).through(add()).using_({"x"}))
             .times(3)
             .using_({"x"})
             .through(rows(4, 2));
       },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         const at::Tensor x = affine(w, 0, batches[0]);
         at::Tensor state = x;
         for (int round = 0; round < 3; ++round)
           state = (round == 0 ? state : hand_on(state)).relu().add(x);
         return {affine(w, 1, state)};
       }},
      {"LoopWithAReference",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .tag("x")
             .loop(FlowBuilder()
                       .input({"x"})
                       .through(rows(4, 4))
                       .through(plus_reference(0.5))
                       .using_({"x"})
                       .through(tanh_of))
             .times(3)
             .using_({"x"})
             .through(rows(4, 2));
       },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         const at::Tensor x = affine(w, 0, batches[0]);
         at::Tensor state = x;
         for (int round = 0; round < 3; ++round)
           state = affine(w, 1, round == 0 ? state : hand_on(state)).add(x, 0.5).tanh();
         return {affine(w, 2, state)};
       }},
      {"LoopUntil",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .loop(one_round())
             .until(threshold_halt(1e9), 3)
             .through(rows(4, 2));
       },
       three_rounds},
      {"LoopWhile",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .loop(one_round())
             .while_(threshold_halt(1e9), 3)
             .through(rows(4, 2));
       },
       three_rounds},
      {"AdaptiveLoop",  // rows halt with a probability of 0.4, and in the third round
       [] {
         const Part halts = [](const at::Tensor& x) {
           return at::full({x.size(0)}, std::log(0.4 / 0.6), x.options());
         };
         return FlowBuilder::from(rows(4, 4))
             .loop(one_round())
             .adaptively(halts, 10)
             .through(rows(4, 2));
       },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         const at::Tensor first = affine(w, 1, affine(w, 0, batches[0])).tanh();
         const at::Tensor second = affine(w, 1, hand_on(first)).tanh();
         const at::Tensor third = affine(w, 1, hand_on(second)).tanh();
         return {affine(w, 2, first.mul(0.4).add(second, 0.4).add(third, 0.2))};
       }},
      {"LoopWhoseBodyHasAState",
       [] { return FlowBuilder::from(rows(4, 4)).loop(step_with_state()).times(3); },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         at::Tensor stream = affine(w, 0, batches[0]);
         at::Tensor state;
         for (int round = 0; round < 3; ++round) {
           const at::Tensor sum = affine(w, 1, round == 0 ? stream : hand_on(stream));
           state = (state.defined() ? sum.add(hand_on(state)) : sum).tanh();
           stream = state;
         }
         return {stream};
       }},
      {"LoopWhoseBodyIsStateful",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .loop(FlowBuilder::from(rows(4, 4)).through(std::make_shared<Discounting>()))
             .times(3);
       },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         at::Tensor stream = affine(w, 0, batches[0]);
         at::Tensor sum;
         for (int round = 0; round < 3; ++round) {
           const at::Tensor next = affine(w, 1, round == 0 ? stream : hand_on(stream));
           sum = sum.defined() ? next.add(hand_on(sum).div(2)) : next;
           stream = sum.sin();
         }
         return {stream};
       }},
      {"StateOfBatches",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .through(rows(4, 4))
             .through(state_add())
             .using_({"h"})
             .through(tanh_of)
             .tag("h");
       },
       state_of_batches, 3},
      {"StateOfBatchesWithin",
       [] { return FlowBuilder::from(rows(4, 4)).through(step_with_state()); }, state_of_batches, 3,
       true},
      {"StateOfBatchesInALayer",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .through(as_layer(step_with_state().build(spec_of({{4}}))));
       },
       state_of_batches, 3, true},
      {"StatefulLayer",
       [] { return FlowBuilder::from(rows(4, 4)).through(std::make_shared<Discounting>()); },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) {
         Tensors results;
         at::Tensor sum;
         for (const at::Tensor& batch : batches) {
           const at::Tensor next = affine(w, 0, batch);
           sum = sum.defined() ? next.add(hand_on(sum).div(2)) : next;
           results.push_back(sum.sin());
         }
         return results;
       },
       3, true},
      {"MapOverRowsWithAState",
       [] { return FlowBuilder::from(rows(4, 4)).map(step_with_state()).each(); },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         Tensors results;
         at::Tensor state;
         const at::Tensor x = affine(w, 0, batches[0]);
         for (std::int64_t row = 0; row < x.size(0); ++row) {
           const at::Tensor sum = affine(w, 1, x.narrow(0, row, 1));
           state = (state.defined() ? sum.add(hand_on(state)) : sum).tanh();
           results.push_back(state);
         }
         return {at::cat(results, 0)};
       }},
      {"RecomputedLoop",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .through(recompute(FlowBuilder().loop(one_round()).times(3)))
             .through(rows(4, 2));
       },
       three_rounds},
      {"LoopInALayer",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .through(as_layer(FlowBuilder().loop(one_round()).times(3).build(spec_of({{4}}))))
             .through(rows(4, 2));
       },
       three_rounds},
      {"LoopsInBranches",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .split({FlowBuilder().loop(one_round()).times(3),
                     FlowBuilder::from(rows(4, 4)).loop(one_round()).times(2), rows(4, 4)})
             .merge(add())
             .through(rows(4, 2));
       },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         const at::Tensor x = affine(w, 0, batches[0]);
         at::Tensor one = x;
         for (int round = 0; round < 3; ++round)
           one = affine(w, 1, round == 0 ? one : hand_on(one)).tanh();
         at::Tensor other = affine(w, 2, x);
         for (int round = 0; round < 2; ++round)
           other = affine(w, 3, round == 0 ? other : hand_on(other)).tanh();
         return {affine(w, 5, one.add(other).add(affine(w, 4, x)))};
       }},
      {"LoopWithinALoop",
       [] {
         return FlowBuilder::from(rows(4, 4))
             .loop(FlowBuilder::from(rows(4, 4)).loop(one_round()).times(2))
             .times(2);
       },
       [](const Tensors& w, const Tensors& batches, HandOn hand_on) -> Tensors {
         at::Tensor state = affine(w, 0, batches[0]);
         for (int round = 0; round < 2; ++round) {
           at::Tensor inner = affine(w, 1, round == 0 ? state : hand_on(state));
           for (int within = 0; within < 2; ++within)
             inner = affine(w, 2, within == 0 ? inner : hand_on(inner)).tanh();
           state = inner;
         }
         return {state};
       }},
  };
}

struct Seen {
  Tensors outputs;
  Tensors gradients;  // of the batches, then of the parameters
};

Tensors batches_of(const Recurrence& one) {
  const TaskRandom random(5);
  Tensors batches;
  for (std::size_t i = 0; i < one.batches; ++i)
    batches.push_back(at::randn({5, 4}, at::kDouble).set_requires_grad(true));
  return batches;
}

at::Tensor loss_of(const Tensors& outputs) {
  at::Tensor loss = outputs[0].square().sum();
  for (std::size_t i = 1; i < outputs.size(); ++i)
    loss = loss.add(outputs[i].square().sum());
  return loss;
}

Seen by_hand(const Recurrence& one, const Graph& graph, HandOn hand_on) {
  Tensors batches = batches_of(one);
  Tensors weights;
  for (const at::Tensor& parameter : graph.parameters())
    weights.push_back(parameter.detach().clone().set_requires_grad(true));
  Seen seen;
  seen.outputs = one.by_hand(weights, batches, hand_on);
  loss_of(seen.outputs).backward();
  batches.insert(batches.end(), weights.begin(), weights.end());
  for (const at::Tensor& tensor : batches)
    seen.gradients.push_back(tensor.grad());
  return seen;
}

/// One backward for all batches of a stream, as the reference has it.
Seen run(const Recurrence& one, Graph& graph, bool one_step) {
  forget_gradients(graph);
  const Tensors batches = batches_of(one);
  ForwardContext context;
  std::optional<TruncatingBptt> scope;
  if (one_step)
    scope.emplace(context);
  Seen seen;
  for (const at::Tensor& batch : batches) {
    Outputs outputs(1);
    graph.forward({&batch, 1}, outputs, context);
    seen.outputs.push_back(outputs[0]);
  }
  loss_of(seen.outputs).backward();
  for (const at::Tensor& batch : batches)
    seen.gradients.push_back(batch.grad());
  const Tensors of_parameters = gradients_of(graph);
  seen.gradients.insert(seen.gradients.end(), of_parameters.begin(), of_parameters.end());
  return seen;
}

bool are_close(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size())
    return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined() != b[i].defined() ||
        (a[i].defined() && !at::allclose(a[i], b[i], 1e-10, 1e-12)))
      return false;
  }
  return true;
}

class TruncatedBptt : public ::testing::TestWithParam<Recurrence> {};

TEST_P(TruncatedBptt, EndsGradientsWhereAStateIsHandedOn) {
  const Recurrence& one = GetParam();
  const TaskRandom random(3);
  const auto graph = one.flow().build(spec_of({{4}}));
  const Seen whole_by_hand = by_hand(one, *graph, whole);
  const Seen cut_by_hand = by_hand(one, *graph, cut);
  ASSERT_FALSE(are_close(cut_by_hand.gradients, whole_by_hand.gradients));
  const Seen all_of_time = run(one, *graph, false);
  ASSERT_TRUE(are_close(all_of_time.outputs, whole_by_hand.outputs));
  ASSERT_TRUE(are_close(all_of_time.gradients, whole_by_hand.gradients));

  const Seen one_step = run(one, *graph, true);

  expect_same(one_step.outputs, all_of_time.outputs);
  EXPECT_TRUE(are_close(one_step.gradients, cut_by_hand.gradients));
}

// One graph takes both in turns: no plan of the one is used for the other.
TEST_P(TruncatedBptt, HasTheSameBitsOnEveryWay) {
  const Recurrence& one = GetParam();
  const TaskRandom random(3);
  const auto graph = one.flow().build(spec_of({{4}}));
  graph->set_branches(Branches::kSequential);
  const Seen all_of_time = run(one, *graph, false);
  const Seen one_step = run(one, *graph, true);
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    graph->set_execution(execution);
    for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
      SCOPED_TRACE(std::string(execution == Execution::kCompiled ? "compiled" : "dynamic") +
                   (branches == Branches::kParallel ? ", branches at once" : ""));
      graph->set_branches(branches);
      with_threads(3, [&] {
        for (int turn = 0; turn < 2; ++turn) {
          for (const bool is_cut : {true, false}) {
            if (!is_cut && one.is_carried_by_calls && execution == Execution::kCompiled)
              continue;
            const Seen seen = run(one, *graph, is_cut);
            const Seen& wanted = is_cut ? one_step : all_of_time;
            expect_same(seen.outputs, wanted.outputs);
            expect_same(seen.gradients, wanted.gradients);
          }
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, TruncatedBptt, ::testing::ValuesIn(recurrences()),
                         [](const auto& info) { return info.param.name; });

/// Branches that wait for each other are on two threads.
TEST(TruncatedBpttOfBranches, AskTheForwardNotTheirThread) {
  struct Asks final : Layer {
    explicit Asks(std::vector<bool>& answers) : answers(answers) {}
    at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
      if (inputs[0].size(0) == 5) {  // not the zeros that tell sizes
        const std::lock_guard lock(mutex);
        answers.push_back(context.truncates_bptt());
      }
      return inputs[0].mul(2);
    }
    std::vector<bool>& answers;
    std::mutex mutex;
  };
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    for (const bool one_step : {true, false}) {
      std::vector<bool> first;
      std::vector<bool> second;
      const auto graph = FlowBuilder()
                             .split({std::make_shared<Asks>(first), std::make_shared<Asks>(second)})
                             .merge(add())
                             .build(spec_of({{4}}));
      graph->set_execution(execution);
      graph->set_branches(Branches::kParallel);
      ForwardContext context;
      context.set_truncated_bptt(one_step);
      const at::Tensor batch = at::randn({5, 4}, at::kDouble);
      with_threads(2, [&] {
        for (int i = 0; i < 20; ++i) {
          Outputs outputs(1);
          graph->forward({&batch, 1}, outputs, context);
        }
      });

      EXPECT_EQ(first, std::vector<bool>(20, one_step));
      EXPECT_EQ(second, std::vector<bool>(20, one_step));
    }
  }
}

}  // namespace
}  // namespace treadle::graph::truncated_bptt_tests
