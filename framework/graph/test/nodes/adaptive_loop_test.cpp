// Learned halting with the gradients of adaptive computation time (Graves 2016).
#include "small_parts.h"

#include <cmath>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/gradient_check.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using treadle::testing::Differentiated;
using treadle::testing::gradients_match;
using treadle::testing::parameters_of;
using treadle::testing::weighted_sum;

double logit(double probability) {
  return std::log(probability / (1 - probability));
}

/// Halts with this probability, whatever the state.
Part halts_with(double probability) {
  return [probability](const at::Tensor& x) {
    return at::full({x.size(0), 1}, logit(probability), x.options());
  };
}

/// The state is also the logit, so that rows of other numbers halt in other rounds.
Part halts_by_itself() {
  return [](const at::Tensor& x) { return x.narrow(-1, 0, 1); };
}

struct Pondered {
  std::vector<double> output;
  std::vector<double> pondered;
};

Pondered ponder(const FlowBuilder& flow, const at::Tensor& input) {
  const auto graph = flow.build();
  GraphState state(*graph);
  Pondered result;
  result.output = numbers(graph->run({&input, 1}, state).front());
  result.pondered = numbers(state.pondered("loop"));
  return result;
}

// By hand: probabilities 0.4, 0.4, and 0.2 that remains; states 2, 3, 4.
// 0.4 · 2 + 0.4 · 3 + 0.2 · 4 = 2.8, three rounds and a remainder of 0.2.
TEST(AdaptiveLoop, WeighsStatesByTheirHaltingProbabilities) {
  const auto result =
      ponder(FlowBuilder().loop(plus(1)).adaptively(halts_with(0.4), 10).tag("loop"), row({1}));

  EXPECT_THAT(result.output, ElementsAre(DoubleNear(2.8, 1e-12)));
  EXPECT_THAT(result.pondered, ElementsAre(DoubleNear(3.2, 1e-12)));
}

// By hand: 0.2 twice, and 0.6 remains for the last round.
TEST(AdaptiveLoop, GivesTheRestToTheLastRoundThereIs) {
  const auto result =
      ponder(FlowBuilder().loop(plus(1)).adaptively(halts_with(0.2), 3).tag("loop"), row({1}));

  EXPECT_THAT(result.output, ElementsAre(DoubleNear(0.2 * 2 + 0.2 * 3 + 0.6 * 4, 1e-12)));
  EXPECT_THAT(result.pondered, ElementsAre(DoubleNear(3.6, 1e-12)));
}

TEST(AdaptiveLoop, LetsARowHaltInItsFirstRoundWithinEpsilon) {
  const Pondering generous{.epsilon = 0.3};

  const auto result = ponder(
      FlowBuilder().loop(plus(1)).adaptively(halts_with(0.8), 5, generous).tag("loop"), row({1}));

  EXPECT_THAT(result.output, ElementsAre(2));
  EXPECT_THAT(result.pondered, ElementsAre(2));  // one round, and all of it remains
}

TEST(AdaptiveLoop, RowsHaltIndependentlyOfEachOther) {
  const auto graph =
      FlowBuilder().loop(times(1.5)).adaptively(halts_by_itself(), 20).tag("loop").build();
  const at::Tensor all = column({-0.5, 0.1, 0.7, 3, 30});
  const at::Tensor together = graph->forward(all);

  for (std::int64_t i = 0; i < all.size(0); ++i)
    EXPECT_TRUE(at::equal(graph->forward(all.narrow(0, i, 1)), together.narrow(0, i, 1))) << i;
  GraphState state(*graph);
  graph->run({&all, 1}, state);
  const std::vector<double> pondered = numbers(state.pondered("loop"));
  EXPECT_GT(pondered[0], 15);  // gets more and more reluctant
  EXPECT_LT(pondered[3], 3);
  EXPECT_EQ(pondered[4], 2);
}

// The body would take a row that has halted to infinity, and zero times that is no number.
TEST(AdaptiveLoop, ARowThatHasHaltedKeepsItsState) {
  const Part square = [](const at::Tensor& x) { return x.mul(x); };
  const at::Tensor rows = at::cat({column({2, 1e100}), column({1, 9})}, 1).requires_grad_(true);
  const Part second = [](const at::Tensor& x) { return x.narrow(1, 1, 1).sub(8); };
  const auto graph = FlowBuilder()
                         .loop(FlowBuilder().through(square))
                         .adaptively(second, 6, {.epsilon = 0.01, .cost = 1})
                         .build();

  const at::Tensor output = graph->forward(rows);
  output.sum().backward();

  EXPECT_TRUE(output.isfinite().all().item<bool>()) << output;
  EXPECT_TRUE(rows.grad().isfinite().all().item<bool>()) << rows.grad();
}

TEST(AdaptiveLoop, IsDoneWhenEveryRowIs) {
  int rounds = 0;
  const Part counting = [&rounds](const at::Tensor& x) {
    ++rounds;
    return x.add(1);
  };
  FlowBuilder().loop(counting).adaptively(halts_with(0.4), 1000).build()->forward(row({1}));

  EXPECT_EQ(rounds, 3);
}

// --- Gradients

/// A loop with weights in body and halting unit.
std::shared_ptr<Graph> weighted_loop(double cost) {
  const TaskRandom random(3);
  torch::nn::Linear body(4, 4);
  torch::nn::Linear halt(4, 1);
  body->to(at::kDouble);
  halt->to(at::kDouble);
  const Part tanh = [](const at::Tensor& x) { return x.tanh(); };
  return FlowBuilder()
      .loop(FlowBuilder::from(body).through(tanh))
      .adaptively(halt, 5, {.epsilon = 0.01, .cost = cost})
      .tag("loop")
      .build();
}

// What backward adds must be the slope of cost · (rounds + remainder), which the forward does not
// return: it is added to the loss here, from what the state of the stream says.
TEST(AdaptiveLoop, BackwardAddsTheSlopesOfTheCostOfPondering) {
  for (const double cost : {0.0, 0.7}) {
    const auto graph = weighted_loop(cost);
    const TaskRandom random(4);
    const at::Tensor input = at::randn({6, 4}, at::kDouble);
    std::vector<Differentiated> by = parameters_of(*graph);
    by.push_back({"input", input});

    const auto value = [&] {
      GraphState state(*graph);
      const at::Tensor loss = weighted_sum({graph->run({&input, 1}, state).front()});
      const at::Tensor pondered = state.pondered("loop");
      EXPECT_FALSE(pondered.requires_grad());
      return loss.add(pondered.sum(), cost);
    };

    EXPECT_TRUE(gradients_match(value, by)) << "at a cost of " << cost;
  }
}

TEST(AdaptiveLoop, WithoutGradientsItIsTheSame) {
  const auto graph = weighted_loop(0.5);
  const at::Tensor input = at::full({3, 4}, 0.3, at::kDouble);
  const at::Tensor trained = graph->forward(input);

  const at::NoGradGuard no_gradients;
  EXPECT_TRUE(at::equal(graph->forward(input), trained));
}

// In a branch that runs on a thread of its own, backward goes another way.
TEST(AdaptiveLoop, CostsTheSameInBranchesAtOnce) {
  const auto gradient = [](Branches branches) {
    const auto left = weighted_loop(0.7);
    const auto right = weighted_loop(0.2);
    const auto graph = FlowBuilder().split({left, right}).merge(add()).build();
    graph->set_branches(branches);
    const at::Tensor input = at::full({3, 4}, 0.3, at::kDouble);
    graph->forward(input).sum().backward();
    return left->parameters()[2].grad().clone();  // of the halting unit
  };

  EXPECT_TRUE(at::equal(gradient(Branches::kParallel), gradient(Branches::kSequential)));
}

TEST(AdaptiveLoop, CostsTheSameWhenCompiled) {
  const auto gradients = [](Execution execution) {
    const auto graph = weighted_loop(0.7);
    graph->set_execution(execution);
    const TaskRandom random(4);
    graph->forward(at::randn({6, 4}, at::kDouble)).square().sum().backward();
    std::vector<std::vector<double>> all;
    for (const at::Tensor& parameter : graph->parameters())
      all.push_back(numbers(parameter.grad()));
    return all;
  };

  EXPECT_EQ(gradients(Execution::kCompiled), gradients(Execution::kDynamic));
}

TEST(AdaptiveLoop, CostsNothingWhereTheLossAsksNothingOfIt) {
  const TaskRandom random(1);
  const torch::nn::Linear used(3, 3);
  const torch::nn::Linear beside(3, 3);
  const auto blocked = [](const torch::nn::Linear& layer) -> Part {
    return FlowBuilder::from([](const at::Tensor& x) { return x.detach(); }).through(layer);
  };
  const auto graph = FlowBuilder()
                         .loop(times(1))
                         .adaptively(torch::nn::Linear(3, 1), 2, {.epsilon = 0.01, .cost = 1})
                         .named("loop")
                         .split({blocked(used), blocked(beside)})
                         .merge(add())
                         .build();
  const at::Tensor input = at::ones({2, 3});
  for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
    graph->set_branches(branches);
    graph->forward(input).square().sum().backward();

    EXPECT_TRUE(used->weight.grad().defined());
    EXPECT_FALSE(graph->named_parameters()["loop.halt.weight"].grad().defined());
  }
}

/// Rounds + remainder, on average, of a loop that has learned to bring rows to 1 at such a cost.
double pondered_after_training(double cost) {
  const TaskRandom random(8);
  torch::nn::Linear halt(1, 1);
  halt->to(at::kDouble);
  const auto graph = FlowBuilder()
                         .loop([](const at::Tensor& x) { return x.mul(0.5).add(0.5); })
                         .adaptively(halt, 12, {.epsilon = 0.01, .cost = cost})
                         .tag("loop")
                         .build();
  const at::Tensor input = at::randn({32, 1}, at::kDouble);
  torch::optim::Adam adam(graph->parameters(), torch::optim::AdamOptions(0.05));
  GraphState state(*graph);
  for (int step = 0; step < 150; ++step) {
    adam.zero_grad();
    graph->run({&input, 1}, state).front().sub(1).square().sum().backward();
    adam.step();
  }
  graph->run({&input, 1}, state);
  return state.pondered("loop").mean().item<double>();
}

// Each round halves the error, so another round is always worth something: how many are worth their
// cost is what it learns.
TEST(AdaptiveLoop, LearnsToHaltEarlierWhenPonderingCostsMore) {
  const double free = pondered_after_training(0);
  const double cheap = pondered_after_training(0.01);
  const double dear = pondered_after_training(1);

  EXPECT_GT(free, cheap + 0.5);
  EXPECT_GT(cheap, dear + 0.5);
  EXPECT_LT(dear, 2.5);
}

/// What a part was given: its inputs, and gradients of what it returned.
struct GivenToPart {
  int calls = 0;
  int gradients = 0;
  int scattered = 0;
};

/// `view` of the input, which no copy makes contiguous, and counts what it is given.
Part viewing(GivenToPart& given, at::Tensor (*view)(const at::Tensor&)) {
  return [&given, view](const at::Tensor& x) {
    ++given.calls;
    given.scattered += x.is_contiguous() ? 0 : 1;
    const at::Tensor result = view(x);
    result.register_hook([&given](const at::Tensor& gradient) {
      ++given.gradients;
      given.scattered += gradient.is_contiguous() ? 0 : 1;
    });
    return result;
  };
}

TEST(AdaptiveLoop, GivesItsPartsContiguousValuesAndGradients) {
  GivenToPart body;
  GivenToPart halt;
  const auto transposed = [](const at::Tensor& x) { return x.mul(1.5).t(); };
  const auto first_column = [](const at::Tensor& x) { return x.sub(5).narrow(-1, 0, 1); };
  const auto graph = FlowBuilder()
                         .loop(viewing(body, transposed))
                         .adaptively(viewing(halt, first_column), 3)
                         .build();
  const TaskRandom random(4);
  const at::Tensor input = at::randn({4, 4}, at::kDouble).set_requires_grad(true);

  graph->forward(input).square().sum().backward();

  EXPECT_EQ(body.calls, 3);
  EXPECT_EQ(body.gradients, 3);
  EXPECT_EQ(body.scattered, 0);
  EXPECT_EQ(halt.calls, 3);
  EXPECT_EQ(halt.gradients, 3);
  EXPECT_EQ(halt.scattered, 0);
}

// --- Mistakes

TEST(AdaptiveLoop, NamesWhatItCannotTake) {
  const auto spec = spec_of({{3}});
  EXPECT_EQ(
      mistakes(FlowBuilder().loop(times(2)).adaptively(times(1), 4), spec),
      "loop() in step 1: \"loop_0\" (loop) cannot take [B, 3] from \"input\": what decides whether "
      "to halt gives one number per row, [B] or [B, 1], but this gives [B, 3]");
  EXPECT_EQ(mistakes(FlowBuilder().loop(times(2)).adaptively(halts_with(0.5), 0)),
            "loop() in step 1: needs at least one round, got 0");
  EXPECT_EQ(mistakes(FlowBuilder().loop(times(2)).adaptively(halts_with(0.5), 4, {.epsilon = 1})),
            "loop() in step 1: halts within an epsilon between 0 and 1, got 1.0");
  EXPECT_EQ(mistakes(FlowBuilder().loop(times(2)).adaptively(halts_with(0.5), 4,
                                                             {.epsilon = 0.1, .cost = -1})),
            "loop() in step 1: needs a cost of pondering that is not negative, got -1.0");
}

TEST(AdaptiveLoop, SaysInAForwardWhatItWasGiven) {
  const auto graph = FlowBuilder().loop(times(2)).adaptively(times(1), 4).build();
  try {
    graph->forward(row({1, 2, 3}));
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_STREQ(error.what(),
                 "in node \"loop_0\", round 1: what decides whether to halt gave 3 numbers for 1 "
                 "rows");
  }
}

TEST(AdaptiveLoop, EndsWithinARoundWhenStopped) {
  std::stop_source stop;
  int rounds = 0;
  const Part body = [&](const at::Tensor& x) {
    if (++rounds == 2)
      stop.request_stop();
    return x.add(1);
  };
  const auto graph = FlowBuilder().loop(body).adaptively(halts_with(0.01), 50).build();
  GraphState state(*graph);
  const at::Tensor input = row({1});

  EXPECT_THROW(graph->run({&input, 1}, state, stop.get_token()), Interrupted);
  EXPECT_EQ(rounds, 2);
}

TEST(AdaptiveLoop, RegistersBodyAndHaltingUnit) {
  std::vector<std::string> names;
  for (const auto& parameter : weighted_loop(0)->named_parameters())
    names.push_back(parameter.key());

  EXPECT_THAT(names, ElementsAre("loop_0.body.Linear_0.weight", "loop_0.body.Linear_0.bias",
                                 "loop_0.halt.weight", "loop_0.halt.bias"));
}

}  // namespace
}  // namespace treadle::graph
