// A sparse mixture beside the same one that computes everything.
#include <string>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The two largest of softmax(x Wᵀ), and zeros.
class TopTwo : public torch::nn::Module {
 public:
  TopTwo(std::int64_t in, std::int64_t experts) : torch::nn::Module("TopTwo"), map(in, experts) {
    map->to(at::kDouble);
    register_module("map", map);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor p = map(x).softmax(-1);
    const at::Tensor chosen = std::get<1>(at::topk(p.detach(), 2, -1));
    return p.mul(at::zeros_like(p.detach()).scatter(-1, chosen, 1));
  }
  torch::nn::Linear map;
};

Part expert(std::int64_t in, std::int64_t out) {
  torch::nn::Linear made(in, out);
  made->to(at::kDouble);
  return made;
}

/// Four experts, of widths that differ.
std::vector<Part> four_experts() {
  return {expert(6, 3), FlowBuilder::from(expert(6, 4)).through(expert(4, 5)), expert(6, 5),
          expert(6, 1)};
}

TEST(SparseMixture, GivesWhatAllExpertsGiveWithItsGradients) {
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{{9, 6}, {4, 5, 6}}) {
    const TaskRandom random(3);
    const Part router = std::make_shared<TopTwo>(6, 4);
    const std::vector<Part> parts = four_experts();
    LayerSpec spec = spec_of({{sizes.begin() + 1, sizes.end()}});
    const auto of = [&](bool sparse) {
      return FlowBuilder()
          .mixture_of_experts(router, parts, {.pad = true, .sparse = sparse})
          .build(spec);
    };
    const auto dense = of(false);
    const auto sparse = of(true);
    const at::Tensor x = at::randn(sizes, at::kDouble).requires_grad_();
    const at::Tensor weight = at::randn({5}, at::kDouble);
    const auto gradients = [&](const Graph& graph) {
      for (const at::Tensor& parameter : dense->parameters())
        parameter.mutable_grad().reset();
      x.mutable_grad().reset();
      const at::Tensor result = graph.forward(x);
      result.mul(weight).sin().sum().backward();
      std::vector<at::Tensor> all{result.detach(), x.grad().clone()};
      for (const at::Tensor& parameter : dense->parameters())
        all.push_back(parameter.grad().clone());
      return all;
    };
    const std::vector<at::Tensor> wanted = gradients(*dense);
    const std::vector<at::Tensor> got = gradients(*sparse);

    EXPECT_EQ(sparse->results()[0], dense->results()[0]);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(at::allclose(got[i], wanted[i], 1e-12, 1e-12)) << i;
  }
}

/// Weights that are there already: the stream's own columns.
Part own_columns(std::int64_t count) {
  return [count](const at::Tensor& x) { return x.narrow(1, 0, count); };
}

TEST(SparseMixture, GivesAnExpertOnlyWhatWeighsIt) {
  std::vector<std::int64_t> rows(3, 0);
  const auto counting = [&](std::size_t expert, double factor) -> Part {
    return [&rows, expert, factor](const at::Tensor& x) {
      rows[expert] += x.size(0);
      return x.narrow(1, 2, 1).mul(factor);
    };
  };
  const auto graph =
      FlowBuilder()
          .mixture_of_experts(own_columns(2), {counting(0, 10), counting(1, 100)}, {.sparse = true})
          .build();
  const at::Tensor x =
      at::tensor({1.0, 0.0, 3.0, 0.0, 0.5, 4.0, 0.0, 0.0, 5.0, 2.0, 1.0, 6.0}, at::kDouble)
          .view({4, 3});

  EXPECT_THAT(numbers(graph->forward(x)), ElementsAre(30, 200, 0, 720));
  EXPECT_THAT(rows, ElementsAre(2, 2, 0));
  EXPECT_THAT(numbers(graph->forward(x.narrow(0, 2, 1))), ElementsAre(0)) << "none weighs it";
}

TEST(SparseMixture, SaysWhatDoesNotFit) {
  const Mixture sparse{.sparse = true};
  EXPECT_THAT(
      mistakes(FlowBuilder().mixture_of_experts(own_columns(3), {times(1), times(2)}, sparse),
               spec_of({{4}})),
      HasSubstr("the router gives weights [B, 3] for 2 experts"));
  EXPECT_THAT(mistakes(FlowBuilder().mixture_of_experts(own_columns(2),
                                                        {expert(4, 3), expert(4, 2)}, sparse),
                       spec_of({{4}})),
              AllOf(HasSubstr("[B, 3]"), HasSubstr("[B, 2]"), HasSubstr("\"pad\": true")));
  const auto keeps = FlowBuilder::from(plus_reference()).using_({"memory"}).tag("memory");
  EXPECT_THAT(
      mistakes(FlowBuilder().mixture_of_experts(
                   own_columns(2), {times(1), FlowBuilder(keeps).initial("memory", {4})}, sparse),
               spec_of({{4}})),
      HasSubstr("expert 1 has a state"));
}

}  // namespace
}  // namespace treadle::graph
