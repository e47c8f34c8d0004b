#include <treadle/core/model/linear.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/model.h>
#include <treadle/core/model/recomputed.h>
#include <treadle/core/model/weights.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/tensor/autocast.h>
#include <treadle/tensor/float8.h>
#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

using Operand = Float8Operand;

/// Of sums of ten products in float32, beside the same in float64.
constexpr double kSums = 1e-5;

/// The number of the format that is nearest, found among all of them.
at::Tensor nearest(const NarrowFloat& format, const at::Tensor& values) {
  at::Tensor all = float8_values(format, at::arange(256, at::TensorOptions(at::kByte)));
  all = all.masked_select(all.isfinite()).to(at::kDouble);
  return all.index_select(0, (values.to(at::kDouble).reshape({-1, 1}) - all).abs().argmin(1))
      .view(values.sizes());
}

/// What float8 leaves of values: float64. `largest`: their magnitude of 1 / scale.
at::Tensor left_of(const NarrowFloat& format, const at::Tensor& values, const at::Tensor& largest) {
  const at::Tensor scale = format.largest / largest.to(at::kDouble);
  return nearest(format, values.to(at::kDouble) * scale) / scale;
}

at::Tensor by_tensor(const NarrowFloat& format, const at::Tensor& values) {
  return left_of(format, values, values.abs().max());
}
at::Tensor by_row(const NarrowFloat& format, const at::Tensor& values) {
  return left_of(format, values, values.abs().amax(1, true));
}
at::Tensor by_column(const NarrowFloat& format, const at::Tensor& values) {
  return left_of(format, values, values.abs().amax(0, true));
}

bool are_close(const at::Tensor& got, const at::Tensor& expected) {
  return got.sizes() == expected.sizes() && got.to(at::kDouble).allclose(expected, kSums, kSums);
}

/// x [7, 5], W [3, 5], b [3] and a gradient [7, 3]: widths of no hardware. Rows and columns differ
/// in size.
struct Product {
  Product() {
    const TaskRandom random(11);
    x = (at::randn({7, 5}) * at::arange(1, 8).view({7, 1})).set_requires_grad(true);
    weight = (at::randn({3, 5}) * at::arange(1, 6)).set_requires_grad(true);
    bias = at::randn({3}).set_requires_grad(true);
    gradient = at::randn({7, 3}) * at::arange(1, 4);
  }
  at::Tensor x;
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor gradient;
};

TEST(Linear, IsThatOfLibtorchWithoutFloat8) {
  const Product given;
  EXPECT_TRUE(at::equal(linear_in_precision(given.x, given.weight, given.bias),
                        at::linear(given.x, given.weight, given.bias)));
  EXPECT_TRUE(
      at::equal(linear_in_precision(given.x, given.weight, {}), at::linear(given.x, given.weight)));
}

TEST(Linear, RoundsByTensor) {
  const Product given;
  const at::Tensor result =
      float8_linear(given.x, given.weight, given.bias, Float8Scaling::kTensorwise);
  result.backward(given.gradient);

  const at::Tensor x = by_tensor(kE4M3, given.x.detach());
  const at::Tensor weight = by_tensor(kE4M3, given.weight.detach());
  const at::Tensor gradient = by_tensor(kE5M2, given.gradient);
  EXPECT_TRUE(are_close(result, x.mm(weight.t()) + given.bias));
  EXPECT_TRUE(are_close(given.x.grad(), gradient.mm(weight)));
  EXPECT_TRUE(are_close(given.weight.grad(), gradient.t().mm(x)));
  EXPECT_TRUE(are_close(given.bias.grad(), given.gradient.sum(0).to(at::kDouble)));
  EXPECT_FALSE(are_close(result, at::linear(given.x, given.weight, given.bias).to(at::kDouble)))
      << "nothing is rounded";
}

TEST(Linear, RoundsByTheRowsThatAProductSumsOver) {
  const Product given;
  const at::Tensor result =
      float8_linear(given.x, given.weight, given.bias, Float8Scaling::kRowwise);
  result.backward(given.gradient);

  const at::Tensor x = given.x.detach();
  const at::Tensor weight = given.weight.detach();
  EXPECT_TRUE(are_close(result, by_row(kE4M3, x).mm(by_row(kE4M3, weight).t()) + given.bias));
  EXPECT_TRUE(
      are_close(given.x.grad(), by_row(kE5M2, given.gradient).mm(by_column(kE4M3, weight))));
  EXPECT_TRUE(
      are_close(given.weight.grad(), by_column(kE5M2, given.gradient).t().mm(by_column(kE4M3, x))));
}

TEST(Linear, RoundsInAScope) {
  const Product given;
  for (const Float8Scaling scaling : {Float8Scaling::kTensorwise, Float8Scaling::kRowwise}) {
    const Float8Scope scope(Float8Use{scaling});
    EXPECT_TRUE(at::equal(linear_in_precision(given.x, given.weight, given.bias),
                          float8_linear(given.x, given.weight, given.bias, scaling)));
    const Float8Scope off(std::nullopt);
    EXPECT_TRUE(at::equal(linear_in_precision(given.x, given.weight, given.bias),
                          at::linear(given.x, given.weight, given.bias)));
  }
  EXPECT_FALSE(Float8Scope::of_this_thread().has_value());
}

TEST(Linear, TakesMoreDimensionsAndOtherDtypes) {
  const Product given;
  const auto of = [&](const at::Tensor& x, at::ScalarType dtype) {
    return float8_linear(x.to(dtype), given.weight.to(dtype), given.bias.to(dtype),
                         Float8Scaling::kRowwise);
  };
  const at::Tensor flat = of(given.x, at::kFloat);
  EXPECT_TRUE(at::equal(of(given.x.view({1, 7, 1, 5}), at::kFloat), flat.view({1, 7, 1, 3})));
  EXPECT_TRUE(at::equal(of(given.x[2], at::kFloat), flat[2])) << "one row";
  EXPECT_EQ(of(given.x, at::kDouble).scalar_type(), at::kDouble);
  EXPECT_TRUE(of(given.x, at::kDouble).allclose(flat.to(at::kDouble), kSums, kSums));
  EXPECT_EQ(of(given.x, at::kBFloat16).scalar_type(), at::kBFloat16);
  EXPECT_EQ(of(given.x.slice(0, 0, 0), at::kFloat).sizes(), (c10::IntArrayRef{0, 3}));
  const AutocastScope autocast(Autocast::on(c10::kCPU, at::kBFloat16));
  EXPECT_TRUE(at::equal(of(given.x, at::kFloat), flat)) << "products of autocast round again";
}

TEST(Linear, LeavesNumbersThatAreNoneAsTheyAre) {
  const Product given;
  at::Tensor x = given.x.detach().clone();
  x[1][2] = std::numeric_limits<float>::infinity();
  for (const Float8Scaling scaling : {Float8Scaling::kTensorwise, Float8Scaling::kRowwise})
    EXPECT_FALSE(float8_linear(x, given.weight, {}, scaling)[1].isfinite().any().item<bool>());
  EXPECT_TRUE(
      at::equal(float8_linear(at::zeros({7, 5}), given.weight, {}, Float8Scaling::kTensorwise),
                at::zeros({7, 3})));
}

TEST(Linear, RefusesGradientsOfGradients) {
  const Product given;
  const at::Tensor sum =
      float8_linear(given.x, given.weight, {}, Float8Scaling::kTensorwise).square().sum();
  EXPECT_THROW(torch::autograd::grad({sum}, {given.x}, {}, true, /*create_graph=*/true),
               TrainingError);
}

/// y = linear(x), with the weight of a Product, and a table that is no matrix of a product.
class OneProduct final : public Model {
 public:
  explicit OneProduct(const std::string& part = "") {
    const Product given;
    table = register_parameter("a_table", at::ones({2, 2}));
    weight = register_parameter("weight", given.weight.detach().clone());
    if (!part.empty())
      register_module(part, std::make_shared<torch::nn::Module>());
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = is_recomputed
                     ? recomputed(*this,
                                  [&](const std::vector<at::Tensor>& x) {
                                    return std::vector{linear_in_precision(x[0], weight, {})};
                                  },
                                  {inputs[0]})
                           .front()
                     : linear_in_precision(inputs[0], times == 1 ? weight : weight.mul(times), {});
  }
  at::Tensor table;
  at::Tensor weight;
  double times = 1;
  bool is_recomputed = false;
};

/// What one scale of a step is made of, in plain numbers.
struct PlainHistory {
  double largest_number = 0;
  std::deque<double> amax = {};

  /// Nothing: there is no history.
  double scale() const {
    return amax.empty() ? 0 : largest_number / *std::max_element(amax.begin(), amax.end());
  }
  void add(double value) {
    amax.push_front(value);
    if (amax.size() > static_cast<std::size_t>(Float8Scales::kHistory))
      amax.pop_back();
  }
};

/// As a training calls the model: `log` is given in its steps alone.
at::Tensor call(Model& model, const at::Tensor& x, LoggedValues* log) {
  ForwardContext context({}, precision_named("fp8-delayed"));
  context.set_log(log);
  Outputs outputs(1);
  model(Inputs(&x, 1), outputs, context);
  return outputs[0];
}

double amax_of(const at::Tensor& values) {
  return values.detach().abs().max().item<double>();
}

/// By what is known of the steps before, or by the values where nothing is.
at::Tensor left_of(const NarrowFloat& format, const at::Tensor& values, const PlainHistory& past) {
  const double scale = past.amax.empty() ? format.largest / amax_of(values) : past.scale();
  return nearest(format,
                 (values.detach().to(at::kDouble) * scale).clamp(-format.largest, format.largest)) /
         scale;
}

TEST(DelayedScales, AreOfTheStepsBefore) {
  for (const bool is_recomputed : {false, true}) {
    OneProduct model;
    model.is_recomputed = is_recomputed;
    model.prepare_for(precision_named("fp8-delayed"));
    LoggedValues log;
    const TaskRandom random(3);
    PlainHistory of_x{448};
    PlainHistory of_weight{448};
    PlainHistory of_gradient{57344};
    for (int step = 0; step < 8; ++step) {
      SCOPED_TRACE(step);
      // Steps whose values are larger than all before are cut off at the format's largest number.
      const double size = step == 4 ? 9 : 1.0 / (1 + step);
      const at::Tensor x = (at::randn({7, 5}) * size).set_requires_grad(true);
      const at::Tensor gradient = at::randn({7, 3}) * size;
      model.weight.mutable_grad() = at::Tensor();

      const at::Tensor y = call(model, x, &log);
      y.backward(gradient);

      const at::Tensor its_x = left_of(kE4M3, x, of_x);
      const at::Tensor its_weight = left_of(kE4M3, model.weight, of_weight);
      const at::Tensor its_gradient = left_of(kE5M2, gradient, of_gradient);
      EXPECT_TRUE(are_close(y, its_x.mm(its_weight.t())));
      EXPECT_TRUE(are_close(x.grad(), its_gradient.mm(its_weight)));
      EXPECT_TRUE(are_close(model.weight.grad(), its_gradient.t().mm(its_x)));
      of_x.add(amax_of(x));
      of_weight.add(amax_of(model.weight));
      of_gradient.add(amax_of(gradient));
      model.float8_scales()->advance();
      const std::int64_t place = model.float8_scales()->place_of(model.weight).value();
      const auto scale = [&](Operand operand) {
        return model.float8_scales()->scale(operand, place).item<double>();
      };
      EXPECT_NEAR(scale(Operand::kInput), of_x.scale(), 1e-6 * of_x.scale());
      EXPECT_NEAR(scale(Operand::kWeight), of_weight.scale(), 1e-6 * of_weight.scale());
      EXPECT_NEAR(scale(Operand::kGradient), of_gradient.scale(), 1e-6 * of_gradient.scale());
      const at::NoGradGuard no_gradients;
      model.weight.mul_(0.9).add_(at::randn_like(model.weight), 0.1);
    }
  }
}

TEST(DelayedScales, ForgetAStepAfterTheirHistory) {
  Float8Scales scales(OneProduct{});
  PlainHistory plain{448};
  for (std::int64_t step = 0; step < Float8Scales::kHistory + 3; ++step) {
    const double value = step == 2 ? 100 : 1 + 0.001 * static_cast<double>(step % 7);
    scales.record(Operand::kInput, 0, at::ones({}) * value);
    scales.advance();
    plain.add(value);
    if (step % 100 == 0 || step >= Float8Scales::kHistory - 1) {
      ASSERT_NEAR(scales.scale(Operand::kInput, 0).item<double>(), plain.scale(), 1e-3) << step;
    }
  }
  EXPECT_GT(scales.scale(Operand::kInput, 0).item<float>(), 400) << "100 is long ago";
}

TEST(DelayedScales, TakeTheLargestOfAStep) {
  Float8Scales model(OneProduct{});
  Float8Scales replica(OneProduct{});
  model.record(Operand::kGradient, 1, at::ones({}) * 2);
  model.record(Operand::kGradient, 1, at::ones({}));
  replica.record(Operand::kGradient, 1, at::ones({}) * 8);
  model.join(replica);
  replica.forget_step();
  model.advance();
  EXPECT_EQ(model.scale(Operand::kGradient, 1).item<float>(), 57344.0F / 8);
  EXPECT_EQ(model.scale(Operand::kGradient, 0).item<float>(), 0) << "it was not used";
  EXPECT_EQ(model.scale(Operand::kWeight, 1).item<float>(), 0);
}

TEST(DelayedScales, AreNotChangedByStepsThatSayNothing) {
  Float8Scales scales(OneProduct{});
  scales.record(Operand::kInput, 0, at::ones({}) * 7);
  scales.advance();
  const StateDict before = module_state(scales).snapshot();
  scales.advance();
  for (const float value :
       {0.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    scales.record(Operand::kInput, 0, at::ones({}) * value);
    scales.advance();
    for (const auto& [name, tensor] : before.tensors())
      EXPECT_TRUE(at::equal(module_state(scales).tensor(name), tensor)) << name << ", " << value;
  }
}

TEST(DelayedScales, AreUsedAndNotChangedByEvaluation) {
  OneProduct model;
  model.prepare_for(precision_named("fp8-delayed"));
  LoggedValues log;
  const Product given;
  call(model, given.x.detach(), &log);
  model.float8_scales()->advance();
  const StateDict before = module_state(model).snapshot();
  const at::Tensor larger = given.x.detach() * 10;

  const at::Tensor result = call(model, larger, nullptr);

  model.float8_scales()->advance();  // nothing was recorded
  for (const auto& [name, tensor] : before.tensors())
    EXPECT_TRUE(at::equal(module_state(model).tensor(name), tensor)) << name;
  const at::Tensor cut = left_of(kE4M3, larger, {448, {amax_of(given.x)}});
  EXPECT_TRUE(are_close(result, cut.mm(by_tensor(kE4M3, model.weight.detach()).t())));
}

TEST(DelayedScales, ArePartsOfTheModelsState) {
  OneProduct model;
  EXPECT_EQ(model.float8_scales(), nullptr);
  model.prepare_for(precision_named("fp8-rowwise"));
  EXPECT_TRUE(model.buffers().empty());
  model.prepare_for(precision_named("fp8-delayed"));
  model.prepare_for(precision_named("fp8-delayed"));

  std::vector<std::string> names;
  for (const auto& buffer : model.named_buffers())
    names.push_back(buffer.key());
  EXPECT_THAT(names, ::testing::ElementsAre("float8_scales.history", "float8_scales.scale"));
  EXPECT_EQ(model.float8_scales()->place_of(model.weight), 1);
  EXPECT_FALSE(model.float8_scales()->place_of(at::ones({3, 5})).has_value());
}

TEST(DelayedScales, AreMadeBeforeTheyAreUsed) {
  OneProduct model;
  EXPECT_THROW(call(model, at::ones({1, 5}), nullptr), ContractViolation);
}

TEST(DelayedScales, HaveANameThatNoOtherPartHas) {
  OneProduct model("float8_scales");
  try {
    model.prepare_for(precision_named("fp8-delayed"));
    FAIL() << "two parts of one name";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rename the part"));
  }
}

TEST(DelayedScales, OfAWeightThatIsNoParameterAreOfTheValuesAtHand) {
  OneProduct model;
  model.prepare_for(precision_named("fp8-delayed"));
  model.times = 3;
  const Product given;
  const at::Tensor result = call(model, given.x.detach(), nullptr);
  EXPECT_TRUE(
      at::equal(result, float8_linear(given.x, model.weight * 3, {}, Float8Scaling::kTensorwise)));
}

TEST(DelayedScales, AreNoConditionOfWeightsInFiles) {
  OneProduct delayed;
  delayed.prepare_for(precision_named("fp8-delayed"));
  const OneProduct plain;
  EXPECT_TRUE(compare_weights(delayed, module_state(plain).tensors()).empty());
  EXPECT_TRUE(compare_weights(plain, module_state(delayed).tensors()).empty());
}

}  // namespace
}  // namespace treadle
