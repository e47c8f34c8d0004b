// Plans for inference: constants become a part of weights, up to rounding, and only where nobody
// can see the difference otherwise (constant folding for inference).
#include "planned_parts.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <torch/nn/modules/batchnorm.h>

#include <treadle/plan/folding.h>
#include <treadle/plan/lowerable.h>
#include <treadle/tensor/task_random.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// weight · x, by column.
class ColumnsOp final : public PlanOp, public MapsChannels {
 public:
  explicit ColumnsOp(at::Tensor weight) : weight_(std::move(weight)) {}
  std::string_view name() const override { return "columns"; }
  TensorSpec result(std::span<const TensorSpec> inputs) const override { return inputs[0]; }
  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    at::mul_out(output, inputs[0], weight_);
  }
  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0])
      at::mul_out(gradients.of_inputs[0], gradients.of_output, weight_);
    if (gradients.of_parameters[0].defined())
      gradients.of_parameters[0].add_(gradients.of_output.mul(gradients.inputs[0]).sum({0}));
  }
  std::vector<at::Tensor> parameters() const override { return {weight_}; }
  std::optional<ChannelMap> channel_map() const override {
    const at::NoGradGuard no_gradients;
    return ChannelMap{1, weight_.to(at::kDouble), at::zeros_like(weight_, at::kDouble)};
  }

 private:
  at::Tensor weight_;
};

class Columns final : public Layer, public Lowerable {
 public:
  explicit Columns(std::int64_t width)
      : weight_(register_parameter("weight", at::rand({width}, at::kDouble).add(0.5))) {}
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].mul(weight_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(std::make_shared<ColumnsOp>(weight_), inputs[0]);
  }

 private:
  at::Tensor weight_;
};

Part columns(std::int64_t width) {
  return std::make_shared<Columns>(width);
}

std::shared_ptr<Graph> prepared(const FlowBuilder& flow) {
  const auto graph = flow.build(spec_of({{4}}));
  graph->eval();
  graph->set_execution(Execution::kCompiled);
  graph->prepare_for_inference();
  return graph;
}

std::shared_ptr<Graph> prepared_pair() {
  return prepared(FlowBuilder::from(rows(4, 3)).through(columns(3)).through(rectify()));
}

at::Tensor dynamically(Graph& graph, const at::Tensor& input) {
  graph.set_execution(Execution::kDynamic);
  at::Tensor result = graph.forward(input);
  graph.set_execution(Execution::kCompiled);
  return result;
}

class Folding : public ::testing::Test {
 protected:
  const TaskRandom random_{1};
  const at::NoGradGuard no_gradients_;
  const at::Tensor input_ = at::randn({6, 4}, at::kDouble);
};

TEST_F(Folding, MakesOneOperationOfTwo) {
  const auto graph = prepared_pair();

  const plan::Plan plan = graph->compile({&input_, 1});

  EXPECT_THAT(operations(plan), ElementsAre("linear", "relu"));
  ASSERT_EQ(plan.folds().size(), 1U);
  EXPECT_EQ(plan.folds()[0].operation, "columns");
  EXPECT_EQ(plan.folds()[0].node, graph->nodes()[2].id);
  EXPECT_EQ(plan.folds()[0].into, graph->nodes()[1].id);
  EXPECT_THAT(plan.text(), HasSubstr("folded: the columns of \"" + graph->nodes()[2].id +
                                     "\", into the weights of \"" + graph->nodes()[1].id + "\"\n"));
}

TEST_F(Folding, GivesTheSameUpToRounding) {
  const auto graph = prepared_pair();
  const at::Tensor wanted = dynamically(*graph, input_);

  const at::Tensor folded = graph->forward(input_);

  EXPECT_TRUE(at::allclose(folded, wanted, 1e-13, 1e-13));
  EXPECT_TRUE(at::equal(graph->forward(input_), folded)) << "a later forward rounds otherwise";
}

TEST_F(Folding, TakesAChainOfMaps) {
  const auto graph =
      prepared(FlowBuilder::from(rows(4, 3)).through(columns(3)).through(columns(3)));

  EXPECT_THAT(operations(graph->compile({&input_, 1})), ElementsAre("linear"));
  EXPECT_TRUE(at::allclose(graph->forward(input_), dynamically(*graph, input_), 1e-13, 1e-13));
}

TEST_F(Folding, LeavesWhatSomebodyElseReads) {
  const auto graph = prepared(FlowBuilder::from(rows(4, 3))
                                  .tag("rows")
                                  .through(columns(3))
                                  .through(plus_reference())
                                  .using_({"rows"}));

  EXPECT_THAT(graph->compile({&input_, 1}).folds(), IsEmpty());
  EXPECT_TRUE(at::equal(graph->forward(input_), dynamically(*graph, input_)));
}

TEST_F(Folding, LeavesWhatIsToBeSeen) {
  const auto graph = prepared(FlowBuilder::from(rows(4, 3)).tag("rows").through(columns(3)));
  GraphState state(*graph);

  graph->run({&input_, 1}, state);
  const at::Tensor seen = state.tagged("rows");

  graph->set_execution(Execution::kDynamic);
  graph->run({&input_, 1}, state);
  EXPECT_TRUE(at::equal(seen, state.tagged("rows")));
}

TEST_F(Folding, RunsBranchesOneByOneUnlessTheyAreForced) {
  const auto graph =
      prepared(FlowBuilder()
                   .split({FlowBuilder::from(rows(4, 3)).through(columns(3)), rows(4, 3)})
                   .merge(add()));
  const at::Tensor wanted = dynamically(*graph, input_);

  for (int forward = 0; forward < 5; ++forward)
    EXPECT_TRUE(at::allclose(graph->forward(input_), wanted, 1e-13, 1e-13));
  EXPECT_THAT(operations(graph->compile({&input_, 1})),
              ElementsAre("draw_seed", "linear", "linear", "add"));
  graph->set_branches(Branches::kParallel);

  EXPECT_THAT(operations(graph->compile({&input_, 1})), ElementsAre("draw_seed", "call", "add"));
  EXPECT_TRUE(at::equal(graph->forward(input_), wanted)) << "what is called is not folded";
}

TEST_F(Folding, LeavesAModuleInTrainingAlone) {
  torch::nn::BatchNorm1d norm(torch::nn::BatchNorm1dOptions(3).momentum(0.5));
  norm->to(at::kDouble);
  const auto graph = prepared(FlowBuilder::from(rows(4, 3)).through(columns(3)).through(norm));
  norm->train();

  graph->forward(input_);

  // Halfway from 0 to the batch's mean: a forward that finds out would have moved it on.
  const auto weights = graph->parameters();
  const at::Tensor given = at::linear(input_, weights[0], weights[1]).mul(weights[2]);
  EXPECT_TRUE(at::allclose(norm->running_mean, given.mean(0).mul(0.5), 1e-12, 1e-12));
}

TEST_F(Folding, NeedsAnOperationBefore) {
  const auto graph = prepared(FlowBuilder::from(columns(4)).through(rows(4, 2)));

  EXPECT_THAT(operations(graph->compile({&input_, 1})), ElementsAre("columns", "linear"));
}

TEST_F(Folding, IsNotWithGradients) {
  const auto graph = prepared_pair();
  const at::AutoGradMode gradients(true);

  EXPECT_THAT(graph->compile({&input_, 1}).folds(), IsEmpty());
  EXPECT_TRUE(at::equal(graph->forward(input_), dynamically(*graph, input_)));
}

TEST_F(Folding, IsNotWhereNobodyAskedForIt) {
  const auto graph = FlowBuilder::from(rows(4, 3)).through(columns(3)).build(spec_of({{4}}));
  graph->eval();

  EXPECT_THAT(graph->compile({&input_, 1}).folds(), IsEmpty());
}

TEST_F(Folding, FollowsWeightsThatChange) {
  const auto graph = prepared_pair();
  graph->forward(input_);

  graph->parameters()[2].fill_(3);

  EXPECT_TRUE(at::allclose(graph->forward(input_), dynamically(*graph, input_), 1e-13, 1e-13));
}

TEST_F(Folding, PreparedAnewSeesWhatWasWrittenPastLibtorch) {
  const auto graph = prepared_pair();
  graph->forward(input_);
  graph->parameters()[2].data_ptr<double>()[1] = 7;

  graph->prepare_for_inference();

  EXPECT_TRUE(at::allclose(graph->forward(input_), dynamically(*graph, input_), 1e-13, 1e-13));
}

/// What it was given so far, counted in its memory.
class Counts final : public Layer {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    const at::Tensor before = context.state().has_tensor("count") ? context.state().tensor("count")
                                                                  : at::zeros({}, at::kDouble);
    context.state().put("count", before.add(1));
    return inputs[0].add(before).add(at::rand({}, at::kDouble));
  }
};

TEST_F(Folding, FindingOutLeavesStatesAndRandomNumbersAlone) {
  const auto graph = prepared(
      FlowBuilder::from(rows(4, 3)).through(columns(3)).through(std::make_shared<Counts>()));
  const auto three = [&] {
    const TaskRandom random(5);
    GraphState state(*graph);
    std::vector<at::Tensor> results;
    for (int i = 0; i < 3; ++i)
      results.push_back(graph->run({&input_, 1}, state)[0]);
    return results;
  };
  const auto folded = three();

  graph->set_execution(Execution::kDynamic);
  const auto wanted = three();

  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(at::allclose(folded[i], wanted[i], 1e-13, 1e-13)) << "forward " << i;
}

}  // namespace
}  // namespace treadle::graph
