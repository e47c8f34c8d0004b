#include <treadle/core/precision/precision.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/model.h>
#include <treadle/tensor/autocast.h>

namespace treadle {
namespace {

/// A linear layer that remembers what it was given and what it computed in.
class Watched final : public Model {
 public:
  explicit Watched(at::ScalarType dtype) {
    register_module("linear", linear_);
    to(dtype);
  }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    given = inputs[0].scalar_type();
    index = inputs[1].scalar_type();
    outputs[0] = linear_->forward(inputs[0]);
    computed = outputs[0].scalar_type();
  }

  at::ScalarType given = at::kByte;
  at::ScalarType index = at::kByte;
  at::ScalarType computed = at::kByte;

 private:
  torch::nn::Linear linear_{3, 2};
};

struct Case {
  const char* name;
  at::ScalarType given;
  at::ScalarType computed;
  at::ScalarType output;
};

class Precisions : public ::testing::TestWithParam<Case> {};

TEST_P(Precisions, DecideWhatAModelIsGivenAndGives) {
  const Precision precision = precision_named(GetParam().name);
  Watched model(precision.parameters);
  const std::vector<at::Tensor> inputs{at::ones({4, 3}, precision.data()), at::arange(4)};
  Outputs outputs(1);
  ForwardContext context({}, precision);

  model(inputs, outputs, context);

  EXPECT_EQ(model.given, GetParam().given);
  EXPECT_EQ(model.index, at::kLong) << "indices are no numbers to round";
  EXPECT_EQ(model.computed, GetParam().computed);
  EXPECT_EQ(outputs[0].scalar_type(), GetParam().output);
  EXPECT_FALSE(Autocast::of_this_thread().is_on());
}

INSTANTIATE_TEST_SUITE_P(Of, Precisions,
                         ::testing::Values(Case{"float32", at::kFloat, at::kFloat, at::kFloat},
                                           Case{"float64", at::kDouble, at::kDouble, at::kDouble},
                                           Case{"bf16", at::kBFloat16, at::kBFloat16, at::kFloat},
                                           Case{"bf16-mixed", at::kFloat, at::kBFloat16,
                                                at::kFloat},
                                           Case{"fp8-rowwise", at::kFloat, at::kFloat, at::kFloat}),
                         [](const auto& one) {
                           std::string name = one.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Precision, ReachesAPartOfABatch) {
  const ForwardContext context({}, precision_named("bf16-mixed"));
  EXPECT_EQ(context.part("part-1").precision(), precision_named("bf16-mixed"));
}

TEST(Precision, OnlyFloat16ScalesTheLoss) {
  for (const NamedPrecision& one : precisions())
    EXPECT_EQ(one.precision.scales_loss, one.precision.autocast == at::kHalf) << one.name;
}

TEST(Precision, OfAnotherNameIsNone) {
  EXPECT_THROW(precision_named("float8"), ContractViolation);
}

}  // namespace
}  // namespace treadle
