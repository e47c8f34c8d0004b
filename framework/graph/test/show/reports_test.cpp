// What layers log and add to the loss reaches the model's context, with its gradient, in the nodes'
// order and with the same bits however the graph runs.
#include <optional>

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/adds_losses.h>
#include <treadle/tensor/task_random.h>

#include "pass.h"
#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// x · w; adds factor · Σ (x · w)² to the loss, and logs the mean of its input.
class Penalized : public Layer, public LogsValues, public AddsLosses {
 public:
  explicit Penalized(double factor = 0.5, double weight = 1.5)
      : Layer("penalized"),
        factor_(factor),
        weight_(register_parameter("weight", at::full({1}, weight, at::kDouble))) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    at::Tensor result = inputs[0].mul(weight_);
    if (context.is_logging())
      context.log("mean", inputs[0], Reduction::kMean);
    if (context.takes_losses())
      context.add_loss("size", result.square().sum().mul(factor_));
    return result;
  }
  std::vector<std::string> logged_names() const override { return {"mean"}; }
  std::vector<std::string> loss_names() const override { return {"size"}; }

 private:
  double factor_;
  at::Tensor weight_;
};

Part penalized(double factor = 0.5, double weight = 1.5) {
  return std::make_shared<Penalized>(factor, weight);
}

Part linear(std::int64_t in, std::int64_t out) {
  torch::nn::Linear made(in, out);
  made->to(at::kDouble);
  return made;
}

struct Reported {
  at::Tensor output;
  std::vector<AuxiliaryLoss> losses;
  std::vector<MetricValue> logged;
};

Reported run(Graph& graph, const at::Tensor& input) {
  LoggedValues log;
  ForwardContext context;
  context.set_log(&log);
  context.set_takes_losses(true);
  Outputs outputs(1);
  graph.forward(std::vector<at::Tensor>{input}, outputs, context);
  return {outputs[0], context.take_losses(), log.means()};
}

std::vector<std::string> names_of(const std::vector<AuxiliaryLoss>& losses) {
  std::vector<std::string> names;
  for (const AuxiliaryLoss& loss : losses)
    names.push_back(loss.name);
  return names;
}

TEST(Reports, ReachTheModelsContext) {
  const auto graph = FlowBuilder::from(times(2)).through(penalized()).named("middle").build();

  const Reported reported = run(*graph, row({1, 3}));

  EXPECT_THAT(numbers(reported.output), ElementsAre(3, 9));
  ASSERT_THAT(names_of(reported.losses), ElementsAre("middle.size"));
  EXPECT_EQ(reported.losses[0].sum.item<double>(), 45);
  ASSERT_EQ(reported.logged.size(), 1u);
  EXPECT_EQ(reported.logged[0].name, "middle.mean");
  EXPECT_EQ(reported.logged[0].value, 4);
  EXPECT_THAT(graph->logged_names(), ElementsAre("middle.mean", "middle.size"));
}

TEST(Reports, AreNotTakenOutsideTraining) {
  const auto graph = FlowBuilder::from(penalized()).build();
  ForwardContext context;
  Outputs outputs(1);
  graph->forward(std::vector<at::Tensor>{row({1})}, outputs, context);
  EXPECT_TRUE(context.take_losses().empty());
  run(*graph, row({1}));
  graph->forward(std::vector<at::Tensor>{row({1})}, outputs, context);
  EXPECT_TRUE(context.take_losses().empty()) << "after a forward that took them";
}

// d/dw of Σ y² + 0.5 Σ y² with y = w x: 3 w Σ x²; d/dx: 3 w² x.
TEST(Reports, LossesHaveTheirGradients) {
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    const auto graph = FlowBuilder::from(penalized(0.5, 2)).build();
    graph->set_execution(execution);
    const at::Tensor input = row({1, 3}).set_requires_grad(true);

    const Reported reported = run(*graph, input);
    reported.output.square().sum().add(reported.losses.at(0).sum).backward();

    EXPECT_EQ(graph->parameters()[0].grad().item<double>(), 3 * 2 * 10);
    EXPECT_THAT(numbers(input.grad()), ElementsAre(12, 36));
  }
}

/// Branches, experts, a loop and a map, with losses in all of them.
std::shared_ptr<Graph> with_losses_everywhere() {
  const TaskRandom random(3);
  const FlowBuilder branch = FlowBuilder::from(linear(6, 6)).through(penalized(0.25));
  const FlowBuilder body = FlowBuilder::from(linear(6, 6)).through(penalized(0.125, 0.75));
  FlowBuilder flow = FlowBuilder::from(linear(6, 6)).tag("first");
  flow.split({branch, linear(6, 6), FlowBuilder::from(linear(6, 6)).through(times(0.5)),
              FlowBuilder::from(linear(6, 6)).through(penalized(0.1, 0.5))})
      .merge(mean())
      .through(penalized(0.2))
      .named("between");
  flow.loop(body).times(3);
  flow.map(FlowBuilder::from(penalized(0.05, 1.25)).through(times(1))).each();
  flow.residual(penalized(0.3));
  return flow.build();
}

struct ReportedBits {
  std::vector<std::string> names;
  std::vector<at::Tensor> losses;
  std::vector<MetricValue> logged;
  Pass pass;
};

ReportedBits reported_bits(Branches branches, Execution execution, bool is_first) {
  const auto graph = with_losses_everywhere();
  graph->set_branches(branches);
  graph->set_execution(execution);
  ReportedBits bits;
  for (int step = 0; step < (is_first ? 1 : 5); ++step) {
    forget_gradients(*graph);
    const TaskRandom random(17);
    const at::Tensor input = at::randn({5, 6}, at::kDouble).set_requires_grad(true);
    const Reported reported = run(*graph, input);
    at::Tensor total = reported.output.square().sum();
    bits.losses.clear();
    for (const AuxiliaryLoss& loss : reported.losses) {
      total = total.add(loss.sum.mul(0.7));
      bits.losses.push_back(loss.sum.detach());
    }
    total.backward();
    bits.names = names_of(reported.losses);
    bits.logged = reported.logged;
    bits.pass = {reported.output.detach(), input.grad().clone(), gradients_of(*graph)};
  }
  return bits;
}

TEST(Reports, HaveTheSameBitsHoweverTheGraphRuns) {
  with_threads(4, [] {
    const ReportedBits one_by_one = reported_bits(Branches::kSequential, Execution::kDynamic, true);
    EXPECT_THAT(one_by_one.names, ElementsAre("flow_0.penalized_0.size", "flow_2.penalized_0.size",
                                              "between.size", "loop_0.body.penalized_0.size",
                                              "map_0.body.penalized_0.size", "penalized_0.size"));
    for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
      for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
        for (const bool is_first : {true, false}) {
          const ReportedBits other = reported_bits(branches, execution, is_first);
          EXPECT_EQ(other.names, one_by_one.names);
          expect_same(other.losses, one_by_one.losses);
          expect_same(other.pass, one_by_one.pass);
          ASSERT_EQ(other.logged.size(), one_by_one.logged.size());
          for (std::size_t i = 0; i < other.logged.size(); ++i) {
            EXPECT_EQ(other.logged[i].name, one_by_one.logged[i].name);
            EXPECT_EQ(other.logged[i].value, one_by_one.logged[i].value);
          }
        }
      }
    }
  });
}

// The loss of a loop's body is that of all its rounds: Σ_n 0.5 (1.5ⁿ)² for an input of 1.
TEST(Reports, AddUpOverRounds) {
  FlowBuilder flow;
  flow.loop(FlowBuilder::from(penalized()).through(times(1))).times(2);
  const auto graph = flow.build();

  const Reported reported = run(*graph, row({1}));

  ASSERT_EQ(reported.losses.size(), 1u);
  EXPECT_EQ(reported.losses[0].sum.item<double>(), 0.5 * (2.25 + 5.0625));
}

TEST(Reports, OfAForwardThatFailedAreForgotten) {
  bool fails = true;
  const Part sometimes = [&fails](const at::Tensor& x) {
    if (fails)
      throw std::runtime_error("no");
    return x.mul(1);
  };
  const auto graph = FlowBuilder::from(penalized()).through(sometimes).build();
  EXPECT_ANY_THROW(run(*graph, row({100})));
  fails = false;

  EXPECT_EQ(run(*graph, row({2})).losses.at(0).sum.item<double>(), 0.5 * 9);
}

TEST(Reports, CompiledGraphsLogInEveryForward) {
  class Logs final : public Layer, public LogsValues {
   public:
    Logs() : Layer("logs") {}
    at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
      context.log("sum", inputs[0], Reduction::kSum);
      return inputs[0].mul(2);
    }
    std::vector<std::string> logged_names() const override { return {"sum"}; }
  };
  const auto graph = FlowBuilder::from(times(3)).through(std::make_shared<Logs>()).build();
  graph->set_execution(Execution::kCompiled);
  for (const double value : {1., 2., 5.}) {
    const Reported reported = run(*graph, row({value, 1}));
    ASSERT_EQ(reported.logged.size(), 1u);
    EXPECT_EQ(reported.logged[0].value, 3 * (value + 1));
  }
}

TEST(Reports, MustBeDeclared) {
  class Silent final : public Penalized {
   public:
    explicit Silent(bool hides_loss) : hides_loss_(hides_loss) {}
    std::vector<std::string> logged_names() const override {
      return hides_loss_ ? Penalized::logged_names() : std::vector<std::string>{"other"};
    }
    std::vector<std::string> loss_names() const override {
      return hides_loss_ ? std::vector<std::string>{} : Penalized::loss_names();
    }

   private:
    bool hides_loss_;
  };
  const auto message = [](bool hides_loss) -> std::string {
    try {
      run(*FlowBuilder::from(std::make_shared<Silent>(hides_loss)).build(), row({1}));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(true), AllOf(HasSubstr("\"size\""), HasSubstr("AddsLosses")));
  EXPECT_THAT(message(false), AllOf(HasSubstr("\"mean\""), HasSubstr("LogsValues")));
}

TEST(Reports, ALossIsOneNumber) {
  class Wrong final : public Penalized {
   public:
    at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
      context.add_loss("size", inputs[0]);
      return inputs[0];
    }
  };
  try {
    run(*FlowBuilder::from(std::make_shared<Wrong>()).build(), row({1, 2}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"size\""), HasSubstr("[1, 2]")));
  }
}

TEST(Reports, PassThroughAGraphThatIsALayer) {
  const auto inner = FlowBuilder::from(times(2)).through(penalized()).build();
  const auto graph = FlowBuilder::from(Part(as_layer(inner))).named("outer").build();

  const Reported reported = run(*graph, row({1}));

  EXPECT_THAT(names_of(reported.losses), ElementsAre("outer.penalized_0.size"));
  EXPECT_EQ(reported.losses[0].sum.item<double>(), 4.5);
  EXPECT_EQ(reported.logged.at(0).value, 2);
}

TEST(Reports, WhatIsComputedTwiceHasNone) {
  const FlowBuilder body = FlowBuilder::from(times(2)).through(penalized());
  EXPECT_THAT(mistakes(FlowBuilder::from(recompute(body)), spec_of({{4}})),
              HasSubstr("may neither log values nor add to the loss"));
}

}  // namespace
}  // namespace treadle::graph
