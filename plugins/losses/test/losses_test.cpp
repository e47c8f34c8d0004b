#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/tensor.h>

#include <treadle/testing/loss_contract.h>
#include <treadle/testing/plugin_under_test.h>

namespace treadle::testing {
namespace {

const PluginUnderTest& plugin() {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin;
}

std::unique_ptr<Loss> make(std::string_view name, nlohmann::json parameters = {}) {
  return plugin().make<Loss>(name, std::move(parameters));
}

LossCase case_of(std::string name, std::string component, nlohmann::json parameters,
                 TargetSpec target) {
  return {std::move(name),
          [component, parameters] { return plugin().make<Loss>(component, parameters); },
          std::move(target)};
}

// Exactly representable in float32 and float64.
constexpr double kClassWeights[] = {0.5, 2, 1.25};

INSTANTIATE_TEST_SUITE_P(
    Losses, LossContract,
    ::testing::Values(case_of("CrossEntropy", "cross_entropy", {}, LossCase::classes(3)),
                      case_of("CrossEntropyOfTwo", "cross_entropy", {}, LossCase::classes(2)),
                      case_of("CrossEntropySmoothed", "cross_entropy", {{"label_smoothing", 0.1}},
                              LossCase::classes(3)),
                      case_of("CrossEntropyWeighted", "cross_entropy",
                              {{"class_weights", kClassWeights}}, LossCase::classes(3)),
                      case_of("CrossEntropyWeightedAndSmoothed", "cross_entropy",
                              {{"class_weights", kClassWeights}, {"label_smoothing", 0.1}},
                              LossCase::classes(3)),
                      case_of("BceWithLogits", "bce_with_logits", {}, LossCase::classes(2)),
                      case_of("BceWithLogitsWeighted", "bce_with_logits", {{"pos_weight", 3.5}},
                              LossCase::classes(2)),
                      case_of("Mse", "mse", {}, LossCase::numbers(1)),
                      case_of("MseOfTwo", "mse", {}, LossCase::numbers(2)),
                      case_of("L1", "l1", {}, LossCase::numbers(1)),
                      case_of("L1OfThree", "l1", {}, LossCase::numbers(3)),
                      case_of("SmoothL1", "smooth_l1", {{"beta", 0.5}}, LossCase::numbers(1)),
                      case_of("SmoothL1OfTwo", "smooth_l1", {}, LossCase::numbers(2))),
    CaseName());

double mean_of(const LossTerms& terms, std::int64_t rows) {
  return terms.sum.item<double>() /
         (terms.weight.defined() ? terms.weight.item<double>() : static_cast<double>(rows));
}

Batch batch_of(const at::Tensor& targets) {
  Batch batch;
  batch.targets = targets;
  batch.original_targets = targets;
  batch.rows = at::arange(targets.size(0));
  return batch;
}

template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(CrossEntropy, MeanEqualsTorchsMeanReduction) {
  const TaskRandom random(3);
  const at::Tensor logits = at::randn({50, 3}, at::kDouble) * 4;
  const at::Tensor targets = at::randint(3, {50}, at::kLong);
  const at::Tensor weights = at::tensor({0.5, 2.0, 1.25}, at::kDouble);

  for (const double smoothing : {0.0, 0.1, 0.9}) {
    for (const bool weighted : {false, true}) {
      nlohmann::json parameters{{"label_smoothing", smoothing}};
      if (weighted)
        parameters["class_weights"] = kClassWeights;

      const LossTerms terms =
          make("cross_entropy", parameters)->forward({logits}, batch_of(targets));

      const double expected =
          at::cross_entropy_loss(logits, targets, weighted ? weights : at::Tensor(),
                                 at::Reduction::Mean, -100, smoothing)
              .item<double>();
      EXPECT_NEAR(mean_of(terms, 50), expected, 1e-14 * expected) << parameters;
    }
  }
}

TEST(CrossEntropy, IsMinusTheLogOfTheRightProbability) {
  const at::Tensor logits = at::tensor({0.7, 0.2, 0.1, 0.25, 0.5, 0.25}, at::kDouble).log();

  const LossTerms terms =
      make("cross_entropy")
          ->forward({logits.view({2, 3})}, batch_of(at::tensor({0, 2}, at::kLong)));

  EXPECT_NEAR(terms.sum.item<double>(), -std::log(0.7) - std::log(0.25), 1e-15);
  EXPECT_FALSE(terms.weight.defined());
}

TEST(CrossEntropy, AsksForOneLogitPerClass) {
  const auto outputs = make("cross_entropy")->outputs_for(LossCase::classes(7));

  EXPECT_EQ(outputs, (std::vector<OutputSpec>{{"logits", 7}}));
}

TEST(CrossEntropy, SaysWhyItCannotWorkOnATarget) {
  const auto loss = make("cross_entropy");

  EXPECT_EQ(
      message_of([&] { loss->outputs_for(LossCase::numbers(1)); }),
      "loss \"cross_entropy\" needs classes, but the target \"price\" is numbers; use mse, l1 "
      "or smooth_l1");
  EXPECT_EQ(message_of([&] { loss->outputs_for(LossCase::classes(1)); }),
            "loss \"cross_entropy\" needs at least two classes, but the target \"species\" has 1");
  EXPECT_EQ(message_of([&] { loss->outputs_for(TargetSpec{}); }),
            "loss \"cross_entropy\" needs classes, but the data has no target; name the target "
            "column in the data slot");
}

TEST(CrossEntropy, WantsOneWeightPerClass) {
  const auto loss = make("cross_entropy", {{"class_weights", {1, 2}}});

  EXPECT_EQ(message_of([&] { loss->outputs_for(LossCase::classes(3)); }),
            "/class_weights: must have one weight per class: the target \"species\" has 3 classes "
            "(class-0, class-1, class-2), got 2 weights");
  EXPECT_EQ(message_of([] {
              make("cross_entropy", {{"class_weights", {0, 0}}});
            }),
            "/class_weights: at least one class must have a weight above 0");
}

TEST(CrossEntropy, RefusesParametersOutOfRange) {
  EXPECT_THROW(make("cross_entropy", {{"label_smoothing", 1}}), DocumentError);
  EXPECT_THROW(make("cross_entropy", {{"label_smoothing", -0.1}}), DocumentError);
  EXPECT_THROW(make("cross_entropy", {{"class_weights", {1, -1}}}), DocumentError);
  EXPECT_THROW(make("smooth_l1", {{"beta", 0}}), DocumentError);
  EXPECT_THROW(make("bce_with_logits", {{"pos_weight", 0}}), DocumentError);
}

TEST(BceWithLogits, MeanEqualsTorchsMeanReduction) {
  const TaskRandom random(4);
  const at::Tensor logits = at::randn({50, 1}, at::kDouble) * 6;
  const at::Tensor targets = at::randint(2, {50}, at::kLong);

  const LossTerms terms =
      make("bce_with_logits", {{"pos_weight", 2.5}})->forward({logits}, batch_of(targets));

  const double expected =
      at::binary_cross_entropy_with_logits(logits, targets.to(at::kDouble).unsqueeze(1), {},
                                           at::tensor({2.5}, at::kDouble), at::Reduction::Mean)
          .item<double>();
  EXPECT_NEAR(mean_of(terms, 50), expected, 1e-14);
}

TEST(BceWithLogits, StaysFiniteForSureLogits) {
  const at::Tensor logits = at::tensor({1000.0, -1000.0}, at::kDouble).view({2, 1});

  const LossTerms terms =
      make("bce_with_logits")->forward({logits}, batch_of(at::tensor({0, 0}, at::kLong)));

  EXPECT_EQ(terms.sum.item<double>(), 1000);
}

TEST(BceWithLogits, GivesProbabilitiesOfBothClasses) {
  const auto values = make("bce_with_logits")
                          ->predictions({at::tensor({0.0, 50.0}, at::kDouble).view({2, 1})})
                          .values;

  EXPECT_EQ(values[0][0].item<double>(), 0.5);
  EXPECT_EQ(values[0][1].item<double>(), 0.5);
  EXPECT_NEAR(values[1][0].item<double>(), std::exp(-50.0), 1e-30);
}

TEST(BceWithLogits, WantsTwoClasses) {
  EXPECT_EQ(message_of([] { make("bce_with_logits")->outputs_for(LossCase::classes(3)); }),
            "loss \"bce_with_logits\" needs two classes, but the target \"species\" has 3; use "
            "cross_entropy");
}

TEST(NumberLoss, MeanEqualsTorchsMeanReduction) {
  const TaskRandom random(5);
  for (const std::int64_t width : {1, 3}) {
    const at::Tensor values = at::randn({40, width}, at::kDouble);
    const at::Tensor targets = at::randn({40, width}, at::kDouble);
    const std::vector<at::Tensor> outputs{values};
    const Batch batch = batch_of(targets);

    EXPECT_NEAR(mean_of(make("mse")->forward(outputs, batch), 40),
                at::mse_loss(values, targets).item<double>(), 1e-15);
    EXPECT_NEAR(mean_of(make("l1")->forward(outputs, batch), 40),
                at::l1_loss(values, targets).item<double>(), 1e-15);
    EXPECT_NEAR(mean_of(make("smooth_l1", {{"beta", 0.7}})->forward(outputs, batch), 40),
                at::smooth_l1_loss(values, targets, at::Reduction::Mean, 0.7).item<double>(),
                1e-15);
  }
}

TEST(NumberLoss, ComputesItsFormula) {
  const std::vector<at::Tensor> outputs{at::tensor({1.0, 5.0}, at::kDouble).view({2, 1})};
  const Batch batch = batch_of(at::tensor({1.5, 2.0}, at::kDouble).view({2, 1}));

  EXPECT_EQ(make("mse")->forward(outputs, batch).sum.item<double>(), 0.25 + 9);
  EXPECT_EQ(make("l1")->forward(outputs, batch).sum.item<double>(), 0.5 + 3);
  // 0.5 * 0.5^2 / 1 below beta = 1; 3 - 0.5 above.
  EXPECT_EQ(make("smooth_l1")->forward(outputs, batch).sum.item<double>(), 0.125 + 2.5);
}

TEST(NumberLoss, NamesItselfAndTheRemedyWhenTheTargetIsClasses) {
  for (const char* name : {"mse", "l1", "smooth_l1"}) {
    EXPECT_EQ(message_of([&] { make(name)->outputs_for(LossCase::classes(3)); }),
              "loss \"" + std::string(name) +
                  "\" needs numbers, but the target \"species\" is classes; use cross_entropy or "
                  "bce_with_logits");
  }
}

TEST(NumberLoss, AsksForAsManyValuesAsTheTargetHas) {
  EXPECT_EQ(make("mse")->outputs_for(LossCase::numbers(4)),
            (std::vector<OutputSpec>{{"values", 4}}));
}

}  // namespace
}  // namespace treadle::testing
