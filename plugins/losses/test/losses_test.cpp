#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <gmock/gmock.h>

#include <treadle/core/training/fits_targets.h>
#include <treadle/core/training/predicts_uncertainty.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/model/loss_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

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

using Case = LossCase;

LossCase weighted_ce(std::string name, TargetSpec target) {
  return case_of(std::move(name), "cross_entropy",
                 {{"class_weights", kClassWeights}, {"label_smoothing", 0.1}}, std::move(target));
}

LossCase ensemble(std::string name, const nlohmann::json& loss, TargetSpec target) {
  return case_of(std::move(name), "ensemble", {{"members", 4}, {"loss", loss}}, std::move(target));
}

INSTANTIATE_TEST_SUITE_P(
    Losses, LossContract,
    ::testing::Values(
        case_of("CrossEntropy", "cross_entropy", {}, Case::classes(3)),
        case_of("CrossEntropyOfTwo", "cross_entropy", {}, Case::classes(2)),
        case_of("CrossEntropySmoothed", "cross_entropy", {{"label_smoothing", 0.1}},
                Case::classes(3)),
        case_of("CrossEntropyWeighted", "cross_entropy", {{"class_weights", kClassWeights}},
                Case::classes(3)),
        weighted_ce("CrossEntropyWeightedAndSmoothed", Case::classes(3)),
        case_of("CrossEntropyOfSteps", "cross_entropy", {}, Case::classes(3, {kVaries})),
        case_of("CrossEntropyOfPixels", "cross_entropy", {{"class_weights", kClassWeights}},
                Case::classes(3, {2, 3})),
        weighted_ce("CrossEntropyOfStepsWeightedAndSmoothed", Case::classes(3, {kVaries})),
        case_of("CrossEntropyOfDistributions", "cross_entropy", {}, Case::distribution(3)),
        weighted_ce("CrossEntropyOfDistributionsAtSteps", Case::distribution(3, {kVaries})),
        case_of("BceWithLogits", "bce_with_logits", {}, Case::classes(2)),
        case_of("BceWithLogitsWeighted", "bce_with_logits", {{"pos_weight", 3.5}},
                Case::classes(2)),
        case_of("BceWithLogitsOfPixels", "bce_with_logits", {}, Case::classes(2, {2, 3})),
        case_of("BceWithLogitsOfLabels", "bce_with_logits", {}, Case::labels(3)),
        case_of("BceWithLogitsOfLabelsAtSteps", "bce_with_logits", {{"pos_weight", kClassWeights}},
                Case::labels(3, {kVaries})),
        ensemble("EnsembleOfClasses", "cross_entropy", Case::classes(3)),
        ensemble("EnsembleOfSteps", {{"use", "cross_entropy"}, {"class_weights", kClassWeights}},
                 Case::classes(3, {kVaries})),
        ensemble("EnsembleOfLabels", "bce_with_logits", Case::labels(3)),
        ensemble("EnsembleOfNumbers", "mse", Case::numbers(2)),
        ensemble("EnsembleOfQuantiles", "quantile", Case::numbers(2, {2, 3})),
        case_of("KlDiv", "kl_div", {}, Case::distribution(3)),
        case_of("KlDivOfSteps", "kl_div", {}, Case::distribution(2, {kVaries})),
        case_of("Mse", "mse", {}, Case::numbers(1)),
        case_of("MseOfTwo", "mse", {}, Case::numbers(2)),
        case_of("MseOfSteps", "mse", {}, Case::numbers(1, {kVaries})),
        case_of("MseOfPixels", "mse", {}, Case::numbers(3, {2, 3})),
        case_of("L1", "l1", {}, Case::numbers(1)), case_of("L1OfThree", "l1", {}, Case::numbers(3)),
        case_of("L1OfSteps", "l1", {}, Case::numbers(2, {kVaries})),
        case_of("SmoothL1", "smooth_l1", {{"beta", 0.5}}, Case::numbers(1)),
        case_of("SmoothL1OfTwo", "smooth_l1", {}, Case::numbers(2)),
        case_of("SmoothL1OfSteps", "smooth_l1", {}, Case::numbers(2, {kVaries, 2})),
        case_of("Quantile", "quantile", {}, Case::numbers(1)),
        case_of("QuantileMedian", "quantile", {{"quantiles", {0.5}}}, Case::numbers(1)),
        case_of("QuantileOfSteps", "quantile", {}, Case::numbers(2, {kVaries})),
        case_of("Correlation", "correlation", {}, Case::numbers(1)),
        case_of("CorrelationOfSteps", "correlation", {}, Case::numbers(2, {kVaries})),
        case_of("Sharpe", "sharpe", {}, Case::numbers(3)),
        case_of("SharpeOfSteps", "sharpe", {}, Case::numbers(2, {kVaries}))),
    CaseName());

Batch batch_of(const at::Tensor& targets) {
  return batch_of_target(targets);
}

LossTerms forward(const Loss& loss, const std::vector<at::Tensor>& outputs,
                  const at::Tensor& targets, const TargetSpec& target) {
  const Batch batch = batch_of(targets);
  return loss.forward(outputs, TargetBatch::transformed(batch, 0, target));
}

double mean_of(const Loss& loss, const std::vector<at::Tensor>& outputs, const Batch& batch,
               const TargetSpec& target) {
  const auto of = TargetBatch::transformed(batch, 0, target);
  const LossTerms terms = loss.forward(outputs, of);
  return terms.sum.item<double>() / weight_of(terms, of);
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

      const double expected =
          at::cross_entropy_loss(logits, targets, weighted ? weights : at::Tensor(),
                                 at::Reduction::Mean, -100, smoothing)
              .item<double>();
      EXPECT_NEAR(mean_of(*make("cross_entropy", parameters), {logits}, batch_of(targets),
                          LossCase::classes(3)),
                  expected, 1e-14 * expected)
          << parameters;
    }
  }
}

TEST(CrossEntropy, IsMinusTheLogOfTheRightProbability) {
  const at::Tensor logits = at::tensor({0.7, 0.2, 0.1, 0.25, 0.5, 0.25}, at::kDouble).log();

  const LossTerms terms = forward(*make("cross_entropy"), {logits.view({2, 3})},
                                  at::tensor({0, 2}, at::kLong), LossCase::classes(3));

  EXPECT_NEAR(terms.sum.item<double>(), -std::log(0.7) - std::log(0.25), 1e-15);
  EXPECT_FALSE(terms.weight.defined());
}

TEST(CrossEntropy, AsksForOneLogitPerClass) {
  const auto outputs = make("cross_entropy")->outputs_for(LossCase::classes(7));

  EXPECT_EQ(outputs, (std::vector<OutputSpec>{{"logits", {7}, {}}}));
}

TEST(CrossEntropy, SaysWhyItCannotWorkOnATarget) {
  const auto loss = make("cross_entropy");

  EXPECT_EQ(
      message_of([&] { loss->outputs_for(LossCase::numbers(1)); }),
      "loss \"cross_entropy\" needs classes or distribution, but the target \"price\" is "
      "numbers; use mse, l1 or smooth_l1, or set \"task\": \"classification\" in the data if its "
      "numbers stand for classes");
  EXPECT_EQ(message_of([&] { loss->outputs_for(LossCase::classes(1)); }),
            "loss \"cross_entropy\" needs at least two classes, but the target \"species\" has 1");
  EXPECT_EQ(message_of([&] { loss->outputs_for(LossCase::labels(3)); }),
            "loss \"cross_entropy\" needs classes or distribution, but the target \"tags\" is "
            "labels; use bce_with_logits");
  EXPECT_EQ(message_of([&] { make("mse")->outputs_for(LossCase::distribution(3)); }),
            "loss \"mse\" needs numbers, but the target \"mixture\" is distribution; use "
            "cross_entropy or kl_div");
}

TEST(CrossEntropy, WantsOneWeightPerClass) {
  const auto loss = make("cross_entropy", {{"class_weights", {1, 2}}});

  EXPECT_EQ(message_of([&] { loss->outputs_for(LossCase::classes(3)); }),
            "/class_weights: must have one weight per class: the target \"species\" has 3 classes "
            "(\"class-0\", \"class-1\", \"class-2\"), got 2 weights");
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

  const double expected =
      at::binary_cross_entropy_with_logits(logits, targets.to(at::kDouble).unsqueeze(1), {},
                                           at::tensor({2.5}, at::kDouble), at::Reduction::Mean)
          .item<double>();
  EXPECT_NEAR(mean_of(*make("bce_with_logits", {{"pos_weight", 2.5}}), {logits}, batch_of(targets),
                      LossCase::classes(2)),
              expected, 1e-14);
}

TEST(BceWithLogits, StaysFiniteForSureLogits) {
  const at::Tensor logits = at::tensor({1000.0, -1000.0}, at::kDouble).view({2, 1});

  const LossTerms terms = forward(*make("bce_with_logits"), {logits}, at::tensor({0, 0}, at::kLong),
                                  LossCase::classes(2));

  EXPECT_EQ(terms.sum.item<double>(), 1000);
}

TEST(BceWithLogits, GivesProbabilitiesOfBothClasses) {
  const auto values = make("bce_with_logits")
                          ->prediction({at::tensor({0.0, 50.0}, at::kDouble).view({2, 1})})
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
    const Batch batch = batch_of(targets);
    const TargetSpec spec = LossCase::numbers(width);

    EXPECT_NEAR(mean_of(*make("mse"), {values}, batch, spec),
                at::mse_loss(values, targets).item<double>(), 1e-15);
    EXPECT_NEAR(mean_of(*make("l1"), {values}, batch, spec),
                at::l1_loss(values, targets).item<double>(), 1e-15);
    EXPECT_NEAR(mean_of(*make("smooth_l1", {{"beta", 0.7}}), {values}, batch, spec),
                at::smooth_l1_loss(values, targets, at::Reduction::Mean, 0.7).item<double>(),
                1e-15);
  }
}

TEST(NumberLoss, ComputesItsFormula) {
  const std::vector<at::Tensor> outputs{at::tensor({1.0, 5.0}, at::kDouble).view({2, 1})};
  const at::Tensor targets = at::tensor({1.5, 2.0}, at::kDouble).view({2, 1});
  const auto sum = [&](std::string_view name) {
    return forward(*make(name), outputs, targets, LossCase::numbers(1)).sum.item<double>();
  };

  EXPECT_EQ(sum("mse"), 0.25 + 9);
  EXPECT_EQ(sum("l1"), 0.5 + 3);
  // 0.5 * 0.5^2 / 1 below beta = 1; 3 - 0.5 above.
  EXPECT_EQ(sum("smooth_l1"), 0.125 + 2.5);
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
            (std::vector<OutputSpec>{{"values", {4}}}));
}

TEST(EnsembleLoss, IsTheMeanOfTheMembersLosses) {
  const TaskRandom random(6);
  const nlohmann::json weighted{{"use", "cross_entropy"}, {"class_weights", kClassWeights}};
  for (const nlohmann::json& one : {nlohmann::json("cross_entropy"), weighted}) {
    const auto alone =
        make("cross_entropy", one.is_object() ? nlohmann::json{{"class_weights", kClassWeights}}
                                              : nlohmann::json::object());
    const auto loss = make("ensemble", {{"members", 3}, {"loss", one}});
    Batch batch = batch_of(at::randint(3, {10, 6}, at::kLong));
    batch.position_weights = {at::rand({10, 6}, at::kDouble)};
    batch.weights = at::rand({10}, at::kDouble);
    const TargetSpec target = LossCase::classes(3, {6});
    const at::Tensor logits = at::randn({10, 6, 3, 3}, at::kDouble);
    double sum = 0;
    at::Tensor probabilities;
    for (std::int64_t member = 0; member < 3; ++member) {
      const std::vector<at::Tensor> its{logits.select(2, member)};
      sum += mean_of(*alone, its, batch, target);
      const at::Tensor values = alone->prediction(its).values;
      probabilities = member == 0 ? values : probabilities.add(values);
    }

    EXPECT_NEAR(mean_of(*loss, {logits}, batch, target), sum / 3, 1e-14);
    EXPECT_TRUE(
        at::allclose(loss->prediction({logits}).values, probabilities.div(3), 1e-14, 1e-14));
  }
}

TEST(EnsembleLoss, IsAsUncertainAsTheMeanOfItsMembers) {
  const TaskRandom random(6);
  const auto alone = make("gaussian_nll");
  const auto loss = make("ensemble", {{"members", 3}, {"loss", "gaussian_nll"}});
  const at::Tensor outputs = at::randn({10, 6, 3, 4}, at::kDouble);
  at::Tensor variance = at::zeros({10, 6, 2}, at::kDouble);
  std::vector<at::Tensor> means;
  for (std::int64_t member = 0; member < 3; ++member) {
    const std::vector<at::Tensor> its{outputs.select(2, member)};
    means.push_back(alone->prediction(its).values);
    variance += alone->ask<PredictsUncertainty>()->uncertainty(its).aleatoric.square() / 3;
  }

  const Prediction::Uncertainty of = loss->ask<PredictsUncertainty>()->uncertainty({outputs});

  EXPECT_TRUE(at::allclose(of.aleatoric.square(), variance, 1e-12, 1e-12));
  EXPECT_TRUE(
      at::allclose(of.epistemic, at::stack(means).std(0, /*unbiased=*/false), 1e-12, 1e-12));
  EXPECT_FALSE(make("ensemble", {{"members", 3}, {"loss", "mse"}})
                   ->ask<PredictsUncertainty>()
                   ->uncertainty({outputs})
                   .aleatoric.defined());
}

TEST(EnsembleLoss, AsksForOutputsOfEachMember) {
  EXPECT_EQ(make("ensemble", {{"members", 5}, {"loss", "mse"}})
                ->outputs_for(LossCase::numbers(2, {kVaries})),
            (std::vector<OutputSpec>{{"values", {kVaries, 5, 2}}}));
}

TEST(EnsembleLoss, IsFittedLikeTheLossWithin) {
  const auto fits = [](const nlohmann::json& loss) {
    return make("ensemble", {{"members", 2}, {"loss", loss}})->ask<FitsTargets>() != nullptr;
  };
  EXPECT_TRUE(fits("cross_entropy"));
  EXPECT_FALSE(fits("mse"));
}

TEST(EnsembleLoss, RefusesALossThatIsNoSumOverRows) {
  EXPECT_THAT(message_of([] {
                make("ensemble", {{"members", 2}, {"loss", "correlation"}});
              }),
              ::testing::HasSubstr("/loss: must be a sum over rows"));
}

TEST(EnsembleLoss, RefusesOutputsInChunks) {
  EXPECT_THAT(message_of([] {
                make("ensemble", {{"members", 2},
                                  {"loss", {{"use", "cross_entropy"}, {"num_output_chunks", 4}}}});
              }),
              ::testing::AllOf(::testing::HasSubstr("/loss: has \"num_output_chunks\""),
                               ::testing::HasSubstr("remove it")));
}

// --- the same means as PyTorch, scikit-learn and NumPy ------------------------------------------
// Computed by PyTorch 1.13, scikit-learn 1.2.1: /usr/bin/python3 plugins/losses/test/reference.py

at::Tensor wave(double step, at::IntArrayRef sizes) {
  return at::arange(c10::multiply_integers(sizes), at::kDouble).mul(step).sin().view(sizes);
}

constexpr std::int64_t kB = 4;
constexpr std::int64_t kT = 5;
constexpr std::int64_t kC = 3;

at::Tensor reference_targets(const TargetSpec& target) {
  const at::Tensor numbers = at::arange(kB * kT * kC, at::kLong).mul(7).remainder(5);
  switch (target.kind) {
    case TargetKind::kClasses:
      return numbers.slice(0, 0, kB * kT).remainder(target.class_count()).view({kB, kT});
    case TargetKind::kLabels:
      return numbers.remainder(2).to(at::kDouble).view({kB, kT, kC});
    case TargetKind::kDistribution:
      return wave(0.7, {kB, kT, kC}).softmax(-1);
    case TargetKind::kNumbers:
      break;
  }
  return wave(0.4, {kB, kT, target.width()});
}

struct Reference {
  std::string name;
  std::string loss;
  nlohmann::json parameters;
  TargetSpec target;
  double mean;
  double weighted_mean;  // position i counts i % 4 / 4
};

class AgainstPyTorch : public ::testing::TestWithParam<Reference> {};

TEST_P(AgainstPyTorch, GivesTheSameMean) {
  const Reference& reference = GetParam();
  const auto loss = make(reference.loss, reference.parameters);
  const OutputSpec output = loss->outputs_for(reference.target).at(0);
  ASSERT_EQ(output.shape.at(0), kVaries);
  const std::vector<at::Tensor> outputs{wave(1.3, {kB, kT, output.width()}).mul(2)};
  Batch batch = batch_of(reference_targets(reference.target));

  EXPECT_NEAR(mean_of(*loss, outputs, batch, reference.target), reference.mean, 1e-14);

  batch.position_weights = {
      at::arange(kB * kT, at::kLong).remainder(4).to(at::kDouble).mul(0.25).view({kB, kT})};
  EXPECT_NEAR(mean_of(*loss, outputs, batch, reference.target), reference.weighted_mean, 1e-14);

  // Half of the weights from the rows instead.
  batch.weights = at::full({kB}, 0.5, at::kDouble);
  EXPECT_NEAR(mean_of(*loss, outputs, batch, reference.target), reference.weighted_mean, 1e-14);
}

const nlohmann::json kWeights{{"class_weights", kClassWeights}};
const nlohmann::json kSmoothing{{"label_smoothing", 0.1}};
const nlohmann::json kBoth{{"class_weights", kClassWeights}, {"label_smoothing", 0.1}};
const TargetSpec kClassSteps = LossCase::classes(3, {kVaries});
const TargetSpec kDistributionSteps = LossCase::distribution(3, {kVaries});
const TargetSpec kLabelSteps = LossCase::labels(3, {kVaries});
const TargetSpec kNumberSteps = LossCase::numbers(3, {kVaries});

INSTANTIATE_TEST_SUITE_P(
    Losses, AgainstPyTorch,
    ::testing::Values(
        Reference{
            "Classes", "cross_entropy", {}, kClassSteps, 1.318352252951635, 1.419601312752319},
        Reference{"ClassesWeighted", "cross_entropy", kWeights, kClassSteps, 1.2933197595025918,
                  1.3630095856141449},
        Reference{"ClassesSmoothed", "cross_entropy", kSmoothing, kClassSteps, 1.3566297052537484,
                  1.4645177169985453},
        Reference{"ClassesWeightedAndSmoothed", "cross_entropy", kBoth, kClassSteps,
                  1.3315889393851283, 1.4110731838093313},
        Reference{"Distribution",
                  "cross_entropy",
                  {},
                  kDistributionSteps,
                  1.6792613562063885,
                  1.8077036726055158},
        Reference{"DistributionWeighted", "cross_entropy", kWeights, kDistributionSteps,
                  2.0387754776525804, 2.213435466559791},
        Reference{"DistributionSmoothed", "cross_entropy", kSmoothing, kDistributionSteps,
                  1.681447898183027, 1.8138098408664225},
        Reference{"DistributionWeightedAndSmoothed", "cross_entropy", kBoth, kDistributionSteps,
                  2.044399374678317, 2.2225476158495625},
        Reference{
            "Labels", "bce_with_logits", {}, kLabelSteps, 1.1761429934150576, 1.1603502458459998},
        Reference{"LabelsWithAWeight",
                  "bce_with_logits",
                  {{"pos_weight", 2.5}},
                  kLabelSteps,
                  1.9061933966537021,
                  1.875310394898031},
        Reference{"LabelsWithWeights",
                  "bce_with_logits",
                  {{"pos_weight", kClassWeights}},
                  kLabelSteps,
                  1.2984908622506526,
                  1.2418485336043492},
        Reference{
            "KlDiv", "kl_div", {}, kDistributionSteps, 0.6467604576791677, 0.7743706912967352},
        Reference{"Mse", "mse", {}, kNumberSteps, 2.514341761084871, 2.814390426345084},
        Reference{"L1", "l1", {}, kNumberSteps, 1.3601862943802447, 1.4660203534182221},
        Reference{"SmoothL1", "smooth_l1", {}, kNumberSteps, 0.9149423825719707, 1.006320051562701},
        Reference{"Quantile",
                  "quantile",
                  {},
                  LossCase::numbers(2, {kVaries}),
                  0.6685426991547619,
                  0.596209128413785},
        Reference{"Correlation",
                  "correlation",
                  {},
                  kNumberSteps,
                  0.009103470186558894,
                  0.055225387438713004},
        Reference{"Sharpe", "sharpe", {}, kNumberSteps, -0.05660262766347024, 0.03872093314478717}),
    CaseName());

TEST(Losses, WhatStandsInPaddingNeedNotBeATarget) {
  for (const Reference& one :
       {Reference{"", "cross_entropy", kBoth, kClassSteps, 0, 1.4110731838093313},
        Reference{"", "cross_entropy", {}, kDistributionSteps, 0, 1.8077036726055158},
        Reference{"", "mse", {}, kNumberSteps, 0, 2.814390426345084},
        Reference{"", "bce_with_logits", {}, kLabelSteps, 0, 1.1603502458459998}}) {
    const at::Tensor weights =
        at::arange(kB * kT, at::kLong).remainder(4).to(at::kDouble).mul(0.25).view({kB, kT});
    const at::Tensor targets = reference_targets(one.target);
    const bool is_class = one.target.kind == TargetKind::kClasses;
    Batch batch = batch_of(with_padding(
        targets, is_class ? at::full_like(targets, -1) : at::full_like(targets, NAN), weights));
    batch.position_weights = {weights};

    EXPECT_NEAR(mean_of(*make(one.loss, one.parameters), {wave(1.3, {kB, kT, kC}).mul(2)}, batch,
                        one.target),
                one.weighted_mean, 1e-14)
        << one.loss;
  }
}

TEST(KlDiv, OfSureTargetsIsTheCrossEntropy) {
  const at::Tensor logits = wave(1.3, {kB, kT, kC}).mul(2);
  const at::Tensor sure = at::one_hot(reference_targets(kClassSteps), kC).to(at::kDouble);

  // The same number as cross_entropy of the classes above: 0 log 0 is 0.
  EXPECT_NEAR(mean_of(*make("kl_div"), {logits}, batch_of(sure), kDistributionSteps),
              1.318352252951635, 1e-14);
}

TEST(BceWithLogits, GivesAProbabilityForEachLabel) {
  const auto said = make("bce_with_logits")
                        ->prediction({at::tensor({0.0, std::log(3.0)}, at::kDouble).view({1, 2})});

  EXPECT_EQ(said.kind, TargetKind::kLabels);
  EXPECT_EQ(said.values[0][0].item<double>(), 0.5);
  EXPECT_NEAR(said.values[0][1].item<double>(), 0.75, 1e-15);
}

TEST(BceWithLogits, WantsOneWeightPerLabel) {
  const auto loss = make("bce_with_logits", {{"pos_weight", {1, 2}}});

  EXPECT_EQ(message_of([&] { loss->outputs_for(LossCase::labels(3)); }),
            "/pos_weight: must be one number, or one per label: the target \"tags\" has 3 labels "
            "(\"class-0\", \"class-1\", \"class-2\"), got 2 numbers");
  EXPECT_EQ(message_of([&] { loss->outputs_for(LossCase::classes(2)); }),
            "/pos_weight: must be one number, since the target \"species\" is classes; a list "
            "belongs to labels");
  EXPECT_EQ(message_of([] { make("bce_with_logits")->outputs_for(LossCase::labels(1)); }),
            "loss \"bce_with_logits\" needs at least two labels, but the target \"tags\" has one; "
            "make it a target of two classes");
  EXPECT_THROW(make("bce_with_logits", {{"pos_weight", {1, 0}}}), DocumentError);
}

TEST(Quantile, PredictsTheMedianAndTheOthersBesideIt) {
  const auto said =
      make("quantile", {{"quantiles", {0.05, 0.5, 0.75}}})->prediction({wave(1, {2, 5, 6})});

  // [B, positions, quantiles, width]
  const at::Tensor outputs = wave(1, {2, 5, 6}).view({2, 5, 3, 2});
  const at::Tensor ordered = std::get<0>(outputs.sort(2));
  EXPECT_TRUE(said.values.equal(ordered.select(2, 1)));
  ASSERT_EQ(said.extras.size(), 2u);
  EXPECT_EQ(said.extras[0].name, "q0.05");
  EXPECT_TRUE(said.extras[0].values.equal(ordered.select(2, 0)));
  EXPECT_EQ(said.extras[1].name, "q0.75");
  EXPECT_TRUE(said.extras[1].values.equal(ordered.select(2, 2)));
  EXPECT_TRUE(said.crossed.equal(outputs.ne(ordered).any(-1).any(-1)));
  EXPECT_TRUE(said.crossed.any().item<bool>()) << "a wave crosses somewhere";
}

TEST(Quantile, PutsOutputsThatCrossInOrder) {
  const auto said = make("quantile", {{"quantiles", {0.1, 0.5, 0.9}}})
                        ->prediction({at::tensor({1.0, 2.0, 3.0, 5.0, 4.0, 6.0}).view({2, 3})});

  EXPECT_TRUE(said.values.squeeze(1).equal(at::tensor({2.0, 5.0})));
  EXPECT_TRUE(said.extras[0].values.squeeze(1).equal(at::tensor({1.0, 4.0})));
  EXPECT_TRUE(said.crossed.equal(at::tensor({0, 1}, at::kLong).to(at::kBool)));
}

TEST(Quantile, AsksForEachQuantileOfEachNumber) {
  EXPECT_EQ(make("quantile")->outputs_for(LossCase::numbers(2, {kVaries})),
            (std::vector<OutputSpec>{
                {"quantiles", {kVaries, 6}, std::vector<Estimate>(3, Estimate::kLocation)}}));
}

TEST(Quantile, RefusesQuantilesThatCannotBe) {
  const auto refusal = [](std::vector<double> quantiles) {
    return message_of([&] { make("quantile", {{"quantiles", quantiles}}); });
  };
  EXPECT_EQ(refusal({0.5, 0.5}), "/quantiles: must ascend, each greater than the one before");
  EXPECT_EQ(refusal({0.9, 0.5}), "/quantiles: must ascend, each greater than the one before");
  EXPECT_EQ(refusal({0.1, 0.9}), "/quantiles: must contain 0.5: the median is the prediction");
  EXPECT_THROW(make("quantile", {{"quantiles", {0.5, 1}}}), DocumentError);
}

TEST(Correlation, IsMinusOneForAnyPositiveScale) {
  const at::Tensor x = wave(1.3, {20, 1});

  EXPECT_NEAR(mean_of(*make("correlation"), {x.mul(3).add(100)}, batch_of(x), LossCase::numbers(1)),
              -1, 1e-12);
  EXPECT_NEAR(mean_of(*make("correlation"), {x.mul(-3)}, batch_of(x), LossCase::numbers(1)), 1,
              1e-12);
}

TEST(Correlation, OfAConstantIsZero) {
  const at::Tensor x = wave(1.3, {20, 1});

  EXPECT_EQ(mean_of(*make("correlation"), {at::zeros_like(x)}, batch_of(x), LossCase::numbers(1)),
            0);
}

TEST(Sharpe, IsZeroWithoutDeviationAndRefusesOneAsset) {
  const auto loss = make("sharpe");

  EXPECT_EQ(mean_of(*loss, {wave(1, {1, 2})}, batch_of(wave(2, {1, 2})), LossCase::numbers(2)), 0);
  EXPECT_EQ(
      message_of([&] { loss->outputs_for(LossCase::numbers(1)); }),
      "loss \"sharpe\" needs the returns of at least two assets, but the target \"price\" has "
      "one number a row; name a column for each asset");
}

TEST(Sharpe, PredictsTheWeightsOfAssets) {
  const auto said = make("sharpe")->prediction({at::zeros({3, 4}, at::kDouble)});

  EXPECT_TRUE(said.values.equal(at::full({3, 4}, 0.25, at::kDouble)));
}

nlohmann::json required_of(const std::string& name) {
  return name == "ensemble" ? nlohmann::json{{"members", 2}, {"loss", "mse"}} : nlohmann::json();
}

TEST(Losses, TheirSchemasSayWhetherTheyAddUp) {
  for (const auto& offer : plugin().offers()) {
    const bool additive = offer.schema.value("x-treadle-additive", true);
    EXPECT_EQ(make(offer.name, required_of(offer.name))->is_additive(), additive) << offer.name;
  }
}

TEST(Losses, TheirSchemasNameTheTargetsTheyTake) {
  const std::vector<TargetSpec> targets{LossCase::classes(2), LossCase::numbers(2),
                                        LossCase::labels(2), LossCase::distribution(2)};
  for (const auto& offer : plugin().offers()) {
    if (offer.name == "ensemble") {  // takes what the loss within does
      EXPECT_FALSE(offer.schema.contains("x-treadle-target"));
      continue;
    }
    const nlohmann::json& said = offer.schema.at("x-treadle-target");
    for (const TargetSpec& target : targets) {
      const bool takes =
          message_of([&] { make(offer.name)->outputs_for(target); }) == "nothing was thrown";
      const std::string kind(name_of(target.kind));
      const bool says = said == kind || (said.is_array() &&
                                         std::find(said.begin(), said.end(), kind) != said.end());
      EXPECT_EQ(takes, says) << offer.name << " " << kind;
    }
  }
}

}  // namespace
}  // namespace treadle::testing
