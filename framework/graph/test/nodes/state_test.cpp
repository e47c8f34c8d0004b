#include "small_parts.h"

#include <atomic>
#include <stop_token>
#include <thread>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/begins_forward.h>
#include <treadle/core/model/abilities/names_references.h>
#include <treadle/core/model/abilities/traced.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> step(const Graph& graph, GraphState& state, const at::Tensor& input) {
  return numbers(graph.run(std::vector<at::Tensor>{input}, state).front());
}

TEST(GraphRun, ConvertsFloatingPointInputsToTheWeights) {
  const auto graph = FlowBuilder::from(torch::nn::Linear(2, 3)).build();
  const auto lookup = FlowBuilder::from(torch::nn::Embedding(5, 3)).build();
  const at::Tensor numbers = at::ones({4, 2});  // float32
  const at::Tensor indices = at::ones({4}, at::kLong);
  const at::Tensor as_before = graph->forward(numbers);

  graph->to(at::kDouble);
  lookup->to(at::kDouble);
  EXPECT_TRUE(graph->forward(numbers).allclose(as_before.to(at::kDouble)));
  EXPECT_EQ(lookup->forward(indices).scalar_type(), at::kDouble);
}

/// sum = stream + sum of the forward before
std::shared_ptr<Graph> running_sum() {
  return FlowBuilder::from(state_add()).using_({"sum"}).tag("sum").build();
}

TEST(GraphStates, AReferenceToALaterTagIsItsValueInTheForwardBefore) {
  const auto graph = running_sum();
  GraphState state(*graph);

  EXPECT_THAT(step(*graph, state, row({1})), ElementsAre(1)) << "absent at first";
  EXPECT_THAT(step(*graph, state, row({2})), ElementsAre(3));
  EXPECT_THAT(step(*graph, state, row({4})), ElementsAre(7));
}

TEST(GraphStates, BeginAsDeclared) {
  const auto graph = FlowBuilder::from(plus_reference())
                         .using_({"sum"})
                         .tag("sum")
                         .initial("sum", {2}, 10)
                         .build(spec_of({{2}}));
  GraphState state(*graph);

  EXPECT_THAT(step(*graph, state, row({1, 2})), ElementsAre(11, 12));
  EXPECT_THAT(step(*graph, state, row({1, 2})), ElementsAre(12, 14));
}

TEST(GraphStates, GoOnWithTheFirstRowsOfASmallerBatch) {
  const auto graph =
      FlowBuilder::from(state_add()).using_({"sum"}).tag("sum").build(spec_of({{1}}));
  GraphState state(*graph);
  step(*graph, state, column({1, 2, 3}));

  EXPECT_THAT(step(*graph, state, column({10, 10})), ElementsAre(11, 12));
  try {
    step(*graph, state, column({1, 1, 1}));
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_STREQ(error.what(),
                 "the state \"sum\" is that of 2 rows, but this batch has 3; batches after the "
                 "first may have fewer rows, not more");
  }
}

TEST(GraphStates, BeginAsDeclaredInTheDtypeOfTheInputWhereNothingElseIsKnown) {
  const auto graph = FlowBuilder::from(plus_reference())
                         .using_({"sum"})
                         .tag("sum")
                         .initial("sum", {1}, 0.1)
                         .build();

  EXPECT_THAT(numbers(graph->forward(row({1}))), ElementsAre(1 + 0.1));
}

TEST(GraphStates, AreOneStreamsOwn) {
  const auto graph = running_sum();
  GraphState one(*graph);
  GraphState other(*graph);
  step(*graph, one, row({1}));

  EXPECT_THAT(step(*graph, other, row({5})), ElementsAre(5));
  EXPECT_THAT(step(*graph, one, row({1})), ElementsAre(2));
}

TEST(GraphStates, AreForgotten) {
  const auto graph = running_sum();
  GraphState state(*graph);
  step(*graph, state, row({1}));

  state.reset();

  EXPECT_FALSE(state.keeps_state());
  EXPECT_THAT(step(*graph, state, row({5})), ElementsAre(5));
}

TEST(GraphStates, CarryGradientsUntilTheyAreCut) {
  const auto graph = running_sum();
  for (const bool cut : {false, true}) {
    GraphState state(*graph);
    const at::Tensor first = row({3}).requires_grad_();
    graph->run(std::vector<at::Tensor>{first}, state);
    if (cut)
      state.detach();
    const at::Tensor second =
        graph->run(std::vector<at::Tensor>{row({1}).requires_grad_()}, state).front();

    second.sum().backward();

    EXPECT_EQ(first.grad().defined(), !cut);
  }
}

TEST(GraphStates, GoOnFromWhatWasSaved) {
  const FlowBuilder inner =
      FlowBuilder::from(state_add()).using_({"sum"}).tag("sum").through(times(1));
  const auto graph = FlowBuilder::from(inner).residual(times(0)).build();
  GraphState state(*graph);
  step(*graph, state, row({1}));
  step(*graph, state, row({2}));
  GraphState loaded(*graph);

  loaded.load_state(state.state());

  EXPECT_THAT(step(*graph, loaded, row({4})), ElementsAre(7));
}

TEST(GraphStates, OfAnotherGraphAreRefused) {
  const auto graph = running_sum();
  const auto other = FlowBuilder::from(state_add()).using_({"total"}).tag("total").build();
  GraphState state(*graph);
  step(*graph, state, row({1}));
  GraphState of_other(*other);

  EXPECT_THROW(of_other.load_state(state.state()), StorageError);
}

TEST(GraphStates, AreCarriedByAModelsContext) {
  const auto graph = running_sum();
  ForwardContext context;
  Outputs outputs(1);
  const std::vector<at::Tensor> two{row({2})};
  graph->forward(two, outputs, context);
  graph->forward(two, outputs, context);

  EXPECT_THAT(numbers(outputs[0]), ElementsAre(4));
  EXPECT_FALSE(context.state().empty());

  ForwardContext fresh;
  graph->forward(two, outputs, fresh);
  EXPECT_THAT(numbers(outputs[0]), ElementsAre(2));
}

TEST(GraphStates, SurviveAForwardThatFails) {
  bool fails = false;
  const Part sometimes = [&fails](const at::Tensor& x) {
    if (fails)
      throw std::runtime_error("no");
    return x.mul(1);
  };
  const auto graph =
      FlowBuilder::from(state_add()).using_({"sum"}).tag("sum").through(sometimes).build();
  GraphState state(*graph);
  step(*graph, state, row({1}));
  fails = true;
  EXPECT_THROW(step(*graph, state, row({100})), TrainingError);
  fails = false;

  EXPECT_THAT(step(*graph, state, row({2})), ElementsAre(3));
}

class CountsForwards : public Layer, public KeepsState {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    const double count = context.state().has_tensor("count")
                             ? context.state().tensor("count").item<double>() + 1
                             : 1;
    context.state().put("count", at::zeros({}, at::kDouble).add(count));
    return inputs[0].mul(count);
  }
};

TEST(LayerState, BelongsToTheStream) {
  const auto graph = FlowBuilder::from(std::make_shared<CountsForwards>()).build();
  GraphState one(*graph);
  GraphState other(*graph);
  step(*graph, one, row({1}));

  EXPECT_THAT(step(*graph, one, row({1})), ElementsAre(2));
  EXPECT_THAT(step(*graph, other, row({1})), ElementsAre(1));

  GraphState loaded(*graph);
  loaded.load_state(one.state());
  EXPECT_THAT(step(*graph, loaded, row({1})), ElementsAre(3));
}

class ToldOfTheBeginning : public Layer, public BeginsForward {
 public:
  void begin_forward(std::int64_t rows, at::Device, LayerContext& context) override {
    context.state().put("rows", nlohmann::json(rows));
  }
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    return inputs[0].mul(context.state().value("rows").get<double>());
  }
};

TEST(LayerAbilities, BeginsForwardIsToldHowManyRowsThereAre) {
  const auto graph = FlowBuilder::from(std::make_shared<ToldOfTheBeginning>()).build();

  EXPECT_THAT(numbers(graph->forward(column({1, 2, 3}))), ElementsAre(3, 6, 9));
}

class Shows : public torch::nn::Module, public Traced {
 public:
  at::Tensor forward(const at::Tensor& x) const { return x.mul(2); }
  at::Tensor trace(const at::Tensor& state) const override { return state.neg(); }
};

TEST(LayerAbilities, TracesAreOneMoreThanRounds) {
  const auto graph = FlowBuilder().loop(std::make_shared<Shows>()).times(3).tag("loop").build();
  GraphState state(*graph);
  step(*graph, state, row({1}));
  step(*graph, state, row({1}));

  std::vector<double> traces;
  for (const at::Tensor& trace : state.traces("loop"))
    traces.push_back(trace.item<double>());
  EXPECT_THAT(traces, ElementsAre(-1, -2, -4, -8));
}

class Named : public Layer, public NamesReferences {
 public:
  std::vector<std::string> reference_names() const override { return {"a", "b"}; }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[1].mul(10).add(inputs[2]);
  }
};

TEST(LayerAbilities, NamedReferencesArriveAsNamed) {
  const auto flow = FlowBuilder::from(times(1))
                        .tag("a")
                        .through(times(2))
                        .tag("b")
                        .through(std::make_shared<Named>())
                        .using_({"b", "a"});

  EXPECT_THAT(numbers(flow.build()->forward(row({1}))), ElementsAre(12));
}

TEST(GraphRuns, EndWithinARoundWhenStopped) {
  std::stop_source stop;
  int rounds = 0;
  const Part body = [&](const at::Tensor& x) {
    if (++rounds == 3)
      stop.request_stop();
    return x.mul(2);
  };
  const FlowBuilder inner = FlowBuilder::from(times(1)).loop(body).times(1000);
  const auto graph = FlowBuilder::from(inner).through(times(1)).build();
  GraphState state(*graph);

  EXPECT_THROW(graph->run(std::vector<at::Tensor>{row({1})}, state, stop.get_token()), Interrupted);
  EXPECT_EQ(rounds, 3);
}

TEST(GraphRuns, SayWhichNodeFailedOnWhatFromWhom) {
  const auto graph = FlowBuilder::from(times(1))
                         .named("begin")
                         .through(torch::nn::Linear(4, 2))
                         .named("narrow")
                         .build();
  try {
    graph->forward(at::ones({3, 5}));
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("node \"narrow\" (Linear) failed on [3, 5] from \"begin\": mat1 and mat2"));
  }
}

TEST(GraphRuns, SayTheWayToANodeWithin) {
  int round = 0;
  const Part body = [&round](const at::Tensor& x) {
    if (++round == 2)
      throw std::runtime_error("enough");
    return x.mul(2);
  };
  const FlowBuilder inner = FlowBuilder::from(times(1)).through(body).named("last");
  const auto graph = FlowBuilder().loop(inner).times(5).named("refine").build();
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    graph->set_execution(execution);
    round = 0;
    try {
      graph->forward(row({1}));
      FAIL();
    } catch (const TrainingError& error) {
      EXPECT_STREQ(error.what(),
                   "in node \"refine\", round 2: node \"last\" (Function) failed on [1, 1] from "
                   "\"Function_0\": enough");
    }
  }
}

TEST(GraphRuns, RefuseBranchesThatAreNone) {
  const auto message = [](const Part& router, SwitchBy by) -> std::string {
    try {
      FlowBuilder().switch_(router, {times(1), times(2)}, by).build()->forward(column({0, 5}));
    } catch (const TrainingError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(
      message([](const at::Tensor& x) { return x.narrow(0, 0, 1).add(2); }, SwitchBy::kBatch),
      HasSubstr("the router chose branch 2 of 2"));
  EXPECT_THAT(message([](const at::Tensor& x) { return x.sub(1); }, SwitchBy::kRow),
              HasSubstr("the router chose branch -1 of 2"));
  EXPECT_THAT(message([](const at::Tensor& x) { return x.narrow(0, 0, 0); }, SwitchBy::kBatch),
              HasSubstr("the router chose nothing"));
  EXPECT_THAT(message([](const at::Tensor& x) { return x.narrow(0, 0, 1); }, SwitchBy::kRow),
              HasSubstr("chose for 1 rows of 2"));
}

TEST(GraphRuns, RefuseAMapOverNothing) {
  EXPECT_THROW(FlowBuilder().map(times(1)).each().build()->forward(at::zeros({0, 3})),
               TrainingError);
}

TEST(GraphRuns, SeveralAtOnce) {
  const auto graph = running_sum();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      GraphState state(*graph);
      double expected = 0;
      for (int i = 0; i < 200; ++i) {
        expected += thread;
        if (step(*graph, state, row({static_cast<double>(thread)})).front() != expected)
          ++wrong;
        ForwardContext context;
        Outputs outputs(1);
        graph->forward(std::vector<at::Tensor>{row({1})}, outputs, context);
        if (outputs[0].item<double>() != 1)
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_EQ(wrong, 0);
}

TEST(GraphParameters, AreNamedAfterTheirNodes) {
  const auto shared = std::make_shared<Scale>(2);
  const auto graph =
      FlowBuilder::from(std::make_shared<Scale>(1))
          .loop(std::make_shared<Scale>(3))
          .times(2)
          .through(shared)
          .split({shared, FlowBuilder::from(std::make_shared<Scale>(4)).through(times(1))})
          .merge(add())
          .through(std::make_shared<Scale>(5))
          .named("last")
          .build();

  EXPECT_THAT(graph->named_parameters().keys(),
              ElementsAre("Scale_0.weight", "loop_0.body.weight", "Scale_1.weight",
                          "flow_0.Scale_0.weight", "last.weight"));
}

TEST(GraphParameters, OfATag) {
  const auto graph =
      FlowBuilder::from(std::make_shared<Scale>(1))
          .tag("one")
          .loop(FlowBuilder::from(std::make_shared<Scale>(2)).through(std::make_shared<Scale>(3)))
          .times(2)
          .tag("two")
          .build();

  ASSERT_EQ(graph->parameters_of("two").size(), 2U);
  EXPECT_EQ(graph->parameters_of("two")[1].item<double>(), 3);
  EXPECT_TRUE(graph->parameters_of("none").empty());
}

TEST(GraphParameters, FrozenOnesGetNoGradient) {
  const auto graph = FlowBuilder::from(std::make_shared<Scale>(2))
                         .tag("first")
                         .through(std::make_shared<Scale>(3))
                         .tag("second")
                         .build();
  const auto backward = [&] { graph->forward(row({1})).sum().backward(); };
  const at::Tensor first = graph->parameters_of("first")[0];
  backward();
  EXPECT_EQ(first.grad().item<double>(), 3);

  graph->freeze({"first"});
  graph->zero_frozen_grads();
  backward();

  EXPECT_FALSE(first.grad().defined());
  EXPECT_EQ(graph->parameters_of("second")[0].grad().item<double>(), 4);
  EXPECT_TRUE(graph->nodes()[*graph->find_tag("first")].frozen);
  graph->unfreeze({"first"});
  backward();
  EXPECT_TRUE(first.grad().defined());
  EXPECT_THROW(graph->freeze({"frist"}), UsageError);
}

TEST(GraphNodes, SayWhatTheyAre) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 4}, at::kFloat)};
  const auto graph = FlowBuilder::from(torch::nn::Linear(4, 8))
                         .tag("wide")
                         .residual(times(1))
                         .using_({})
                         .build(spec);

  const auto& nodes = graph->nodes();
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(nodes[1].id, "Linear_0");
  EXPECT_EQ(nodes[1].parameters, 40);
  EXPECT_EQ(nodes[1].result->text(), "[B, 8]");
  EXPECT_THAT(nodes[1].tags, ElementsAre("wide"));
  EXPECT_EQ(nodes[3].id, "add_0");
  ASSERT_EQ(nodes[3].inputs.size(), 2U);
  EXPECT_EQ(nodes[3].inputs[1].port, "input_1");
  EXPECT_EQ(nodes[3].inputs[1].node, 2U);
}

TEST(GraphModes, TrainAndEvalReachEveryNode) {
  const auto leaf = std::make_shared<Scale>(1);
  const auto graph =
      FlowBuilder().loop(FlowBuilder::from(times(1)).through(leaf)).times(1).build(spec_of({{1}}));
  EXPECT_TRUE(leaf->is_training()) << "as it was before sizes were tried out";

  graph->eval();

  EXPECT_FALSE(leaf->is_training());
}

}  // namespace
}  // namespace treadle::graph
