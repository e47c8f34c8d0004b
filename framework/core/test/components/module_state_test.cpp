#include <treadle/core/components/module_state.h>

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

namespace treadle {
namespace {

TEST(DistinctParameters, HaveATiedWeightOnce) {
  torch::nn::Module module;
  const torch::nn::Linear linear(2, 3);
  module.register_module("first", linear.ptr());
  module.register_module("again", linear.ptr());
  const at::Tensor own = module.register_parameter("own", at::ones({4}));
  ASSERT_EQ(module.parameters().size(), 5U);

  const std::vector<at::Tensor> distinct = distinct_parameters(module);

  ASSERT_EQ(distinct.size(), 3U);
  EXPECT_TRUE(distinct[0].is_same(own));
  EXPECT_TRUE(distinct[1].is_same(linear->weight));
  EXPECT_TRUE(distinct[2].is_same(linear->bias));
  EXPECT_EQ(distinct_parameter_names(module),
            (std::vector<std::string>{"own", "first.weight", "first.bias"}));
}

}  // namespace
}  // namespace treadle
