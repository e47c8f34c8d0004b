#include <treadle/plan/fused_kernel.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/threshold_backward.h>

namespace treadle::plan {
namespace {

using Step = FusedKernel::Step;

class FusedKernels : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  /// Several blocks and a rest.
  static at::Tensor values() { return at::randn({3, 411}, at::TensorOptions(GetParam())); }

  static at::Tensor run(std::vector<Step> steps, std::vector<at::Tensor> given) {
    steps.back().is_wanted = true;
    std::vector<at::Tensor> wanted{at::empty_like(given[0], at::MemoryFormat::Contiguous)};
    FusedKernel(std::move(steps)).run(given, wanted);
    return wanted[0];
  }
  static at::Tensor run_one(ElementwiseRule rule, const at::Tensor& a, const at::Tensor& b,
                            double number = 0) {
    return run({Step{rule, number, {false, 0}, {false, 1}}}, {a, b});
  }
};

TEST_P(FusedKernels, HaveTheBitsOfLibtorch) {
  const at::Tensor a = values();
  const at::Tensor b = values();
  using Rule = ElementwiseRule;

  EXPECT_TRUE(at::equal(run_one(Rule::kAdd, a, b), at::add(a, b)));
  EXPECT_TRUE(at::equal(run_one(Rule::kSubtract, a, b), at::sub(a, b)));
  EXPECT_TRUE(at::equal(run_one(Rule::kMultiply, a, b), at::mul(a, b)));
  EXPECT_TRUE(at::equal(run_one(Rule::kScale, a, b, 0.3), at::mul(a, 0.3)));
  EXPECT_TRUE(at::equal(run_one(Rule::kDivide, a, b, 3), at::div(a, 3)));
  EXPECT_TRUE(at::equal(run_one(Rule::kShift, a, b, 0.7), at::add(a, 0.7)));
  EXPECT_TRUE(at::equal(run_one(Rule::kRelu, a, b), at::relu(a)));
  EXPECT_TRUE(at::equal(run_one(Rule::kLeakyRelu, a, b, 0.1), at::leaky_relu(a, 0.1)));
  EXPECT_TRUE(at::equal(run_one(Rule::kReluGradient, a, b), at::threshold_backward(a, b, 0)));
  EXPECT_TRUE(at::equal(run_one(Rule::kLeakyReluGradient, a, b, 0.1),
                        at::leaky_relu_backward(a, b, 0.1, /*self_is_result=*/false)));
}

TEST_P(FusedKernels, RoundEveryStep) {
  const at::Tensor a = values();
  const at::Tensor b = values();

  const at::Tensor result = run({Step{ElementwiseRule::kMultiply, 0, {false, 0}, {false, 1}},
                                 Step{ElementwiseRule::kAdd, 0, {true, 0}, {false, 1}},
                                 Step{ElementwiseRule::kRelu, 0, {true, 1}, {}}},
                                {a, b});

  EXPECT_TRUE(at::equal(result, at::relu(at::add(at::mul(a, b), b))));
}

TEST_P(FusedKernels, MayWriteOverWhatTheyAreGiven) {
  const at::Tensor a = values();
  const at::Tensor b = values();
  const at::Tensor sum = at::add(a, b);
  std::vector<at::Tensor> wanted{a};

  FusedKernel({Step{ElementwiseRule::kAdd, 0, {false, 0}, {false, 1}, true}})
      .run(std::vector{a, b}, wanted);

  EXPECT_TRUE(at::equal(a, sum));
}

TEST_P(FusedKernels, TakeOtherStrides) {
  const at::Tensor a = at::randn({411, 3}, at::TensorOptions(GetParam())).t();
  const at::Tensor b = values();

  EXPECT_TRUE(at::equal(run_one(ElementwiseRule::kAdd, a, b), at::add(a, b)));
}

TEST_P(FusedKernels, KeepNotANumber) {
  at::Tensor a = values();
  a.fill_(std::numeric_limits<double>::quiet_NaN());

  EXPECT_TRUE(std::isnan(run_one(ElementwiseRule::kRelu, a, a)[0][0].item<double>()));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, FusedKernels, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& info) {
                           return info.param == at::kFloat ? "Float32" : "Float64";
                         });

}  // namespace
}  // namespace treadle::plan
