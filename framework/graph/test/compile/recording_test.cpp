// Modules that know nothing of plans, recorded.
#include "planned_parts.h"

#include <functional>
#include <string>
#include <vector>

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <treadle/graph/graph.h>
#include <treadle/tensor/task_random.h>

#include "pass.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using RowSizes = std::vector<std::int64_t>;

/// Any function, promised to be recordable.
struct Promised : torch::nn::Module, Recordable {
  using Function = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight)>;
  explicit Promised(Function function)
      : torch::nn::Module("Promised"),
        weight(register_parameter("weight", at::randn({4}, at::kDouble))),
        function(std::move(function)) {}
  at::Tensor forward(const at::Tensor& x) { return function(x, weight); }
  at::Tensor weight;
  Function function;
};

std::shared_ptr<Promised> promised(Promised::Function function) {
  return std::make_shared<Promised>(std::move(function));
}

/// A module of libtorch, in float64.
template <typename Holder>
Holder exact(Holder holder) {
  holder->to(at::kDouble);
  return holder;
}

struct ModuleCase {
  std::string name;
  std::function<FlowBuilder()> flow;
  RowSizes sizes = {4};  // of a row
};

class Recorded : public ::testing::TestWithParam<ModuleCase> {};

struct ModuleBits {
  at::Tensor output;
  std::vector<at::Tensor> rest;  // gradients of input and parameters, and buffers
};

ModuleBits module_bits(Graph& graph, const at::Tensor& input, bool input_needs_gradient) {
  forget_gradients(graph);
  const TaskRandom random(7);
  const at::Tensor leaf = input.detach().set_requires_grad(input_needs_gradient);
  ModuleBits bits;
  bits.output = graph.forward(leaf);
  if (bits.output.requires_grad())
    bits.output.square().sum().backward();
  bits.rest = gradients_of(graph);
  bits.rest.push_back(leaf.grad());
  for (const at::Tensor& buffer : graph.buffers())
    bits.rest.push_back(buffer.clone());
  return bits;
}

TEST_P(Recorded, GivesTheBitsOfTheModule) {
  for (const bool trains : {true, false}) {
    for (const bool input_needs_gradient : {true, false}) {
      SCOPED_TRACE(std::string(trains ? "training" : "evaluation") +
                   (input_needs_gradient ? "" : ", input without gradient"));
      const auto made = [&] {
        const TaskRandom random(1);
        auto graph = GetParam().flow().build(spec_of({GetParam().sizes}));
        graph->train(trains);
        return graph;
      };
      const auto dynamic = made();
      const auto compiled = made();
      compiled->set_execution(Execution::kCompiled);
      RowSizes sizes = GetParam().sizes;
      sizes.insert(sizes.begin(), 6);
      const TaskRandom random(2);
      for (int round = 0; round < 3; ++round) {
        const at::Tensor input = at::randn(sizes, at::kDouble);
        const ModuleBits wanted = module_bits(*dynamic, input, input_needs_gradient);
        const ModuleBits got = module_bits(*compiled, input, input_needs_gradient);
        EXPECT_TRUE(at::equal(got.output, wanted.output)) << "round " << round;
        expect_same(got.rest, wanted.rest);
      }
      sizes[0] = 3;
      const at::Tensor input = at::randn(sizes, at::kDouble);
      const plan::Plan plan = compiled->compile({&input, 1});
      EXPECT_THAT(plan.calls(), IsEmpty()) << plan.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modules, Recorded,
    ::testing::Values(
        ModuleCase{"Linear", [] { return FlowBuilder::from(exact(torch::nn::Linear(4, 3))); }},
        ModuleCase{"LinearOfSequences",
                   [] { return FlowBuilder::from(exact(torch::nn::Linear(4, 3))); },
                   {5, 4}},
        ModuleCase{"Chain",
                   [] {
                     return FlowBuilder::from(exact(torch::nn::Linear(4, 8)))
                         .through(exact(torch::nn::SELU()))
                         .through(exact(torch::nn::LayerNorm(torch::nn::LayerNormOptions({8}))))
                         .residual(FlowBuilder::from(exact(torch::nn::Linear(8, 8)))
                                       .through(exact(torch::nn::GELU())))
                         .through(exact(torch::nn::Linear(8, 2)));
                   }},
        ModuleCase{"BatchNorm",
                   [] {
                     return FlowBuilder::from(exact(torch::nn::Linear(4, 8)))
                         .through(exact(torch::nn::BatchNorm1d(8)));
                   }},
        ModuleCase{"Convolutions",
                   [] {
                     return FlowBuilder::from(exact(torch::nn::Conv2d(
                                                  torch::nn::Conv2dOptions(2, 3, 3).padding(1))))
                         .through(exact(torch::nn::BatchNorm2d(3)))
                         .through(exact(torch::nn::ReLU(torch::nn::ReLUOptions())))
                         .through(exact(torch::nn::MaxPool2d(2)))
                         .through(exact(torch::nn::GroupNorm(torch::nn::GroupNormOptions(3, 3))));
                   },
                   {2, 6, 6}},
        ModuleCase{"AmongLowered",
                   [] {
                     return FlowBuilder::from(rows(4, 8))
                         .through(exact(torch::nn::SiLU()))
                         .through(rectify())
                         .through(exact(torch::nn::Softplus()))
                         .through(rows(8, 2));
                   }},
        ModuleCase{"Views",
                   [] {
                     return FlowBuilder::from(promised([](const at::Tensor& x,
                                                          const at::Tensor& w) {
                       const auto halves = x.mul(w).chunk(2, 1);
                       return at::stack({halves[0], halves[1].mul(halves[0])}, 1).transpose(1, 2);
                     }));
                   }},
        ModuleCase{"ItsOwnInput",
                   [] {
                     return FlowBuilder::from(
                                promised([](const at::Tensor& x, const at::Tensor&) { return x; }))
                         .through(rows(4, 4));
                   }},
        ModuleCase{"InPlaceOnItsOwn",
                   [] {
                     return FlowBuilder::from(
                         promised([](const at::Tensor& x, const at::Tensor& w) {
                           return x.mul(w).add_(1).div_(3);
                         }));
                   }}),
    [](const auto& info) { return info.param.name; });

std::string why_not_recorded(Promised::Function function) {
  const auto graph = FlowBuilder::from(promised(std::move(function))).build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const plan::Plan plan = graph->compile({&input, 1});
  return plan.calls().empty() ? "it is recorded" : plan.calls().front().why;
}

TEST(Recording, RefusesWhatCannotBeReplayed) {
  EXPECT_EQ(why_not_recorded([](const at::Tensor& x, const at::Tensor& w) {
              return x.sum().item<double>() > 0 ? x.mul(w) : x.div(w);
            }),
            "what it does depends on numbers (aten::_local_scalar_dense)");
  EXPECT_EQ(why_not_recorded([](const at::Tensor& x, const at::Tensor& w) {
              return x.mul(w).index_select(0, x.select(1, 0).nonzero().flatten());
            }),
            "what it does depends on numbers (aten::nonzero)");
  EXPECT_EQ(why_not_recorded([](const at::Tensor& x, const at::Tensor& w) {
              return x.mul(w).index({x.select(1, 0).isfinite()});
            }),
            "what it does depends on numbers (a mask as index)");
  EXPECT_THAT(why_not_recorded([](const at::Tensor& x, const at::Tensor& w) {
                return at::dropout(x.mul(w), 0.5, true);
              }),
              ::testing::StartsWith("it draws random numbers (aten::"));
  EXPECT_EQ(why_not_recorded([](const at::Tensor& x, const at::Tensor& w) {
              x.detach().add_(0);
              return x.mul(w);
            }),
            "it writes to an input (aten::add_)");
  EXPECT_EQ(why_not_recorded([](const at::Tensor& x, const at::Tensor& w) {
              w.detach().add_(0);
              return x.mul(w);
            }),
            "it writes to a parameter (aten::add_)");
  const at::Tensor elsewhere = at::randn({4}, at::kDouble);
  EXPECT_EQ(why_not_recorded(
                [=](const at::Tensor& x, const at::Tensor& w) { return x.mul(w).add(elsewhere); }),
            "it reads a tensor that is no input, parameter or buffer (aten::add)");
  EXPECT_EQ(
      why_not_recorded([](const at::Tensor& x, const at::Tensor& w) { return x.mul(w).add(w); }),
      "it uses a parameter more than once, whose gradient is a sum");
  EXPECT_EQ(why_not_recorded([](const at::Tensor& x, const at::Tensor& w) { return x.mul(w); }),
            "it is recorded");
}

TEST(Recording, ComparesWithTheModuleBeforeItIsTrusted) {
  int calls = 0;
  EXPECT_EQ(why_not_recorded([&calls](const at::Tensor& x, const at::Tensor& w) {
              return x.mul(w).mul(++calls);
            }),
            "a recording of its operators does not give its bits");
}

TEST(Recording, LeavesModulesOfUnknownEffectAlone) {
  int calls = 0;
  const auto graph = FlowBuilder::from(rows(4, 4))
                         .through(Part([&calls](const at::Tensor& x) {
                           ++calls;
                           return x.mul(2);
                         }))
                         .build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  graph->set_execution(Execution::kCompiled);
  const int before = calls;

  for (int round = 0; round < 3; ++round)
    graph->forward(input);

  EXPECT_EQ(calls, before + 3);
}

TEST(Recording, IsListed) {
  const at::NoGradGuard no_gradients;
  const auto graph = FlowBuilder::from(exact(torch::nn::Linear(4, 2))).build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);

  EXPECT_THAT(operations(graph->compile({&input, 1})), ElementsAre("recorded Linear"));
}

}  // namespace
}  // namespace treadle::graph
