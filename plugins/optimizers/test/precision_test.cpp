// How far from exact: float64 beside the formulas of papers (libtorch's own rules are compared in
// optimizers_test.cpp), float32 beside float64 and beside libtorch's float32.
#include <cmath>
#include <fstream>
#include <map>

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/source_path.h>

#include "layers.h"

namespace treadle::testing {
namespace {

std::unique_ptr<Optimizer> make(const std::string& name, const nlohmann::json& parameters) {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin.make<Optimizer>(name, parameters);
}

at::Tensor random_numbers(std::int64_t count, std::uint64_t seed) {
  const TaskRandom random(seed);
  return at::randn({count}, at::kFloat);
}

// --- beside the papers --------------------------------------------------------------------------
// test/reference.json is made by NumPy 1.24: /usr/bin/python3 test/reference.py >
// test/reference.json

struct PaperCase {
  std::string name;
  std::string component;
  nlohmann::json parameters;
  std::vector<double> values;
  double float32_error = 0;
};

std::vector<PaperCase> paper_cases() {
  std::ifstream file(source_path(TREADLE_PLUGIN_FOLDER) / "test/reference.json");
  std::vector<PaperCase> cases;
  std::map<std::string, int> seen;
  for (const nlohmann::json& one : nlohmann::json::parse(file)) {
    const std::string component = one.at("name");
    cases.push_back({component + std::to_string(++seen[component]), component, one.at("parameters"),
                     one.at("values"), one.at("float32_error")});
  }
  return cases;
}

class AgainstThePaper : public ::testing::TestWithParam<PaperCase> {
 protected:
  static constexpr double kRate = 0.01;
  static constexpr std::int64_t kCount = 17;

  /// As in reference.py.
  static double start(std::int64_t i) { return static_cast<double>((37 * i + 11) % 64 - 31) / 32; }
  static double gradient(std::int64_t step, std::int64_t i) {
    return static_cast<double>((7919 * step * step + 104729 * i + 31 * step * i) % 1021 - 510) /
           256;
  }

  at::Tensor trained(at::ScalarType dtype) {
    at::Tensor numbers = at::empty({kCount}, at::kDouble);
    double* const at = numbers.data_ptr<double>();
    for (std::int64_t i = 0; i < kCount; ++i)
      at[i] = start(i);
    const auto optimizer = make(GetParam().component, GetParam().parameters);
    Layers layers(*optimizer, {12, 5}, numbers.to(dtype));
    for (std::int64_t step = 0; step < 1000; ++step) {
      for (std::int64_t i = 0; i < kCount; ++i)
        at[i] = gradient(step, i);
      layers.step(numbers, kRate);
    }
    return layers.values().to(at::kDouble);
  }
};

TEST_P(AgainstThePaper, AThousandStepsEndWhereTheFormulaDoes) {
  const at::Tensor values = trained(at::kDouble);

  ASSERT_EQ(GetParam().values.size(), static_cast<std::size_t>(kCount));
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double expected = GetParam().values[static_cast<std::size_t>(i)];
    EXPECT_NEAR(values[i].item<double>(), expected, 1e-12 * std::max(std::abs(expected), kRate))
        << "element " << i;
  }
}

TEST_P(AgainstThePaper, SinglePrecisionIsAtMostTwiceAsFarOffAsTheFormulas) {
  const at::Tensor values = trained(at::kFloat);

  double error = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    error = std::max(
        error, std::abs(values[i].item<double>() - GetParam().values[static_cast<std::size_t>(i)]));
  }
  EXPECT_LE(error, 2 * GetParam().float32_error);
}

INSTANTIATE_TEST_SUITE_P(Rules, AgainstThePaper, ::testing::ValuesIn(paper_cases()), CaseName());

// --- one step in single precision ----------------------------------------------------------------

struct StepCase {
  std::string name;
  std::string component;
  nlohmann::json parameters;
};

class OneStep : public ::testing::TestWithParam<StepCase> {
 protected:
  static void expect_within_four_ulps(const at::Tensor& single, const at::Tensor& exact) {
    const at::Tensor error = single.to(at::kDouble).sub(exact).abs();
    double worst = 0;
    for (std::int64_t i = 0; i < exact.numel(); ++i) {
      const auto size = static_cast<float>(std::abs(exact.data_ptr<double>()[i]));
      const double ulp = std::nextafter(size, INFINITY) - size;
      worst = std::max(worst, error.data_ptr<double>()[i] / ulp);
    }
    EXPECT_LE(worst, 4);
    EXPECT_GT(worst, 0);  // not double arithmetic twice
  }

  /// What float32 holds of `of`'s parameters and slots.
  static void take_over(Layers& into, Layers& of) {
    into.arena().parameters().copy_(of.arena().parameters());
    for (std::size_t slot = 0; slot < of.slots().count(); ++slot)
      into.slots().tensor(slot).copy_(of.slots().tensor(slot));
    into.slots().updates().copy_(of.slots().updates());
  }
};

// The step itself, which nothing larger hides.
TEST_P(OneStep, FromZeroIsWithinFourUlpsOfDouble) {
  constexpr std::int64_t kCount = 8080;
  const auto optimizer = make(GetParam().component, GetParam().parameters);
  Layers exact(*optimizer, {kCount}, at::zeros({kCount}, at::kDouble));
  Layers single(*optimizer, {kCount}, at::zeros({kCount}, at::kFloat));

  exact.step(random_numbers(kCount, 1), 0.003);
  single.step(random_numbers(kCount, 1), 0.003);

  expect_within_four_ulps(single.values(), exact.values());
}

TEST_P(OneStep, InSinglePrecisionIsWithinFourUlpsOfDouble) {
  const std::vector<std::int64_t> sizes = {8000, 64, 16};  // of one layout in both precisions
  constexpr std::int64_t kCount = 8080;
  const auto optimizer = make(GetParam().component, GetParam().parameters);
  // Of size 0.5 and more: of a small parameter the last digit is less than the direction's.
  const at::Tensor start = random_numbers(kCount, 1);
  start.add_(start.sign().mul(0.5));
  for (const double rate : {0.001, 0.01}) {
    Layers exact(*optimizer, sizes, start.to(at::kDouble));
    for (std::uint64_t step = 0; step < 20; ++step)
      exact.step(random_numbers(kCount, 10 + step), 0);  // moves nothing, but fills the slots
    Layers single(*optimizer, sizes, start);
    take_over(single, exact);
    take_over(exact, single);  // both begin with the same numbers

    exact.step(random_numbers(kCount, 2), rate);
    single.step(random_numbers(kCount, 2), rate);

    SCOPED_TRACE("rate " + std::to_string(rate));
    expect_within_four_ulps(single.values(), exact.values());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, OneStep,
    ::testing::Values(
        StepCase{"Sgd", "sgd", {{"weight_decay", 0.1}}},
        StepCase{"Momentum", "sgd", {{"momentum", 0.9}, {"dampening", 0.1}}},
        StepCase{"Nesterov", "sgd", {{"momentum", 0.9}, {"nesterov", true}}},
        StepCase{"Adam", "adam", {{"weight_decay", 0.1}}}, StepCase{"AdamW", "adamw", {}},
        StepCase{"RmsProp", "rmsprop", {}},
        StepCase{"RmsPropInside", "rmsprop", {{"eps_inside_root", true}, {"momentum", 0.9}}},
        StepCase{"RmsPropCentered", "rmsprop", {{"centered", true}}},
        StepCase{"Adagrad", "adagrad", {{"learning_rate_decay", 0.01}}},
        StepCase{"Lion", "lion", {{"weight_decay", 0.1}}}, StepCase{"Lamb", "lamb", {}}),
    CaseName());

// --- a thousand steps in single precision, beside libtorch's
// ---------------------------------------

struct Errors {
  double worst = 0;
  double mean_square = 0;
};

Errors errors(const at::Tensor& got, const at::Tensor& expected) {
  const at::Tensor difference = got.to(at::kDouble).sub(expected);
  return {difference.abs().max().item<double>(), difference.square().mean().item<double>()};
}

constexpr std::int64_t kErrorCount = 3000;
constexpr double kErrorRate = 0.01;

/// Where libtorch's optimizer ends.
template <typename Torch, typename Options>
at::Tensor torch_values(const Options& options, at::ScalarType dtype) {
  at::Tensor values = random_numbers(kErrorCount, 1).to(dtype).requires_grad_(true);
  Torch torch(std::vector<at::Tensor>{values}, options);
  for (std::uint64_t step = 0; step < 1000; ++step) {
    values.mutable_grad() = random_numbers(kErrorCount, 10 + step).to(dtype);
    torch.step();
  }
  return values.detach();
}

template <typename Torch, typename Options>
void expect_errors_like_torchs(const std::string& component, const nlohmann::json& parameters,
                               const Options& options) {
  const auto optimizer = make(component, parameters);
  Layers ours(*optimizer, {kErrorCount - 8, 8}, random_numbers(kErrorCount, 1));
  for (std::uint64_t step = 0; step < 1000; ++step)
    ours.step(random_numbers(kErrorCount, 10 + step), kErrorRate);

  const at::Tensor exact = torch_values<Torch>(options, at::kDouble);
  const Errors theirs = errors(torch_values<Torch>(options, at::kFloat), exact);
  const Errors mine = errors(ours.values(), exact);

  EXPECT_LE(mine.worst, 2 * theirs.worst) << component << parameters;
  EXPECT_LE(mine.mean_square, 4 * theirs.mean_square) << component << parameters;
}

TEST(AThousandSteps, OfSgdAreAtMostTwiceAsFarOffAsTorchs) {
  using torch::optim::SGD;
  using Options = torch::optim::SGDOptions;

  expect_errors_like_torchs<SGD>("sgd", {}, Options(kErrorRate));
  expect_errors_like_torchs<SGD>("sgd", {{"momentum", 0.9}, {"weight_decay", 0.1}},
                                 Options(kErrorRate).momentum(0.9).weight_decay(0.1));
  expect_errors_like_torchs<SGD>("sgd", {{"momentum", 0.9}, {"nesterov", true}},
                                 Options(kErrorRate).momentum(0.9).nesterov(true));
}

TEST(AThousandSteps, OfAdamAreAtMostTwiceAsFarOffAsTorchs) {
  expect_errors_like_torchs<torch::optim::Adam>(
      "adam", {{"weight_decay", 0.1}}, torch::optim::AdamOptions(kErrorRate).weight_decay(0.1));
  expect_errors_like_torchs<torch::optim::AdamW>(
      "adamw", {}, torch::optim::AdamWOptions(kErrorRate).weight_decay(0.01));
}

TEST(AThousandSteps, OfRmsPropAreAtMostTwiceAsFarOffAsTorchs) {
  using torch::optim::RMSprop;
  using Options = torch::optim::RMSpropOptions;

  expect_errors_like_torchs<RMSprop>("rmsprop", {}, Options(kErrorRate));
  expect_errors_like_torchs<RMSprop>("rmsprop", {{"momentum", 0.9}, {"centered", true}},
                                     Options(kErrorRate).momentum(0.9).centered(true));
}

TEST(AThousandSteps, OfAdagradAreAtMostTwiceAsFarOffAsTorchs) {
  expect_errors_like_torchs<torch::optim::Adagrad>(
      "adagrad", {{"learning_rate_decay", 0.001}},
      torch::optim::AdagradOptions(kErrorRate).lr_decay(0.001));
}

}  // namespace
}  // namespace treadle::testing
