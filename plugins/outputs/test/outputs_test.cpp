#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/data/port_spec.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/model/metric_contract.h>
#include <treadle/testing/model/output_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/evaluated_rows.h>

namespace treadle {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::HasSubstr;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::function<std::unique_ptr<OutputStage>()> maker(std::string name, json parameters = {}) {
  return [name = std::move(name), parameters = std::move(parameters)] {
    return plugin().make<OutputStage>(name, parameters);
  };
}

const json kByF1{{"threshold", "f1"}};
const json kByCost{{"threshold", {{"cost", {{"false_positive", 1}, {"false_negative", 5}}}}}};

INSTANTIATE_TEST_SUITE_P(
    Outputs, OutputContract,
    ::testing::Values(
        OutputCase{"TemperatureOfTwo", maker("temperature"), testing::class_target(2)},
        OutputCase{"Temperature", maker("temperature"), testing::class_target(4)},
        OutputCase{"TemperatureOfPositions", maker("temperature"),
                   testing::class_target(3, {kVaries})},
        OutputCase{"TemperatureOfLabels", maker("temperature"), label_target(3)},
        OutputCase{"Temperatures", maker("temperature", {{"per_class", true}}),
                   testing::class_target(3)},
        OutputCase{"TemperaturesOfTwo", maker("temperature", {{"per_class", true}}),
                   testing::class_target(2)},
        OutputCase{"PlattOfTwo", maker("platt"), testing::class_target(2)},
        OutputCase{"Platt", maker("platt"), testing::class_target(3)},
        OutputCase{"PlattOfLabels", maker("platt"), label_target(2, {3})},
        OutputCase{"IsotonicOfTwo", maker("isotonic"), testing::class_target(2)},
        OutputCase{"Isotonic", maker("isotonic"), testing::class_target(3)},
        OutputCase{"IsotonicOfLabels", maker("isotonic"), label_target(3)},
        OutputCase{"Intervals", maker("conformal"), testing::number_target(2)},
        OutputCase{"IntervalsOfAHorizon", maker("conformal"), testing::number_target(1, {4})},
        OutputCase{"IntervalsOfPositions", maker("conformal"),
                   testing::number_target(1, {kVaries})},
        OutputCase{"IntervalsByGroup", maker("conformal", {{"by", "group"}}),
                   testing::number_target(1)},
        OutputCase{"IntervalsOfPositionsByGroup", maker("conformal", {{"by", "group"}}),
                   testing::number_target(1, {kVaries})},
        OutputCase{"Quantiles", maker("conformal"), testing::number_target(1), {0.1, 0.9}},
        OutputCase{"IntervalsOfFolds", maker("conformal", {{"method", "cv+"}}),
                   testing::number_target(2)},
        OutputCase{"IntervalsOfFoldsOfAHorizon", maker("conformal", {{"method", "cv+"}}),
                   testing::number_target(1, {4})},
        OutputCase{"IntervalsOfFoldsOfPositions", maker("conformal", {{"method", "cv+"}}),
                   testing::number_target(1, {kVaries})},
        OutputCase{"AdaptiveSets", maker("conformal"), testing::class_target(3)},
        OutputCase{"SetsByClass", maker("conformal", {{"score", "lac"}, {"by", "class"}}),
                   testing::class_target(3)},
        OutputCase{"SetsByGroup", maker("conformal", {{"by", "group"}}),
                   testing::class_target(3, {2})},
        OutputCase{"ThresholdByF1", maker("threshold", kByF1), testing::class_target(2)},
        OutputCase{"ThresholdByCost", maker("threshold", kByCost), label_target(3)},
        OutputCase{"ThresholdGiven", maker("threshold", {{"threshold", 0.3}}),
                   testing::class_target(2, {kVaries})}),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Coverage, MetricContract,
    ::testing::Values(MetricCase{"OfIntervals",
                                 [] { return plugin().make<MetricComputer>("interval_coverage"); },
                                 MetricCase::numbers(1),
                                 1e-12,
                                 1e-5,
                                 false,
                                 {"lower", "upper"}},
                      MetricCase{"OfSets",
                                 [] { return plugin().make<MetricComputer>("set_coverage"); },
                                 MetricCase::classes(3),
                                 1e-12,
                                 1e-5,
                                 false,
                                 {"in_set"}}),
    CaseName());

std::unique_ptr<OutputStage> fitted(const std::string& name, const json& parameters,
                                    const TargetSpec& target, const EvaluatedRows& rows) {
  auto stage = plugin().make<OutputStage>(name, parameters);
  stage->start(target);
  stage->fit(rows.prediction, TargetBatch::original(rows.batch, 0, target));
  return stage;
}

double learned(const OutputStage& stage, std::size_t index = 0) {
  return stage.learned().at(index).value;
}

/// The rows of reference.py.
constexpr std::int64_t kRows = 48;
at::Tensor row_weights() {
  return at::arange(kRows, at::kDouble).remainder(4) / 2 + 0.5;
}

EvaluatedRows three_classes() {
  const at::Tensor i = at::arange(kRows, at::kDouble).unsqueeze(1);
  const at::Tensor c = at::arange(3, at::kDouble).unsqueeze(0);
  const at::Tensor logits = 4 * (1.7 * i + 2.3 * c + 0.1 * i * c).sin();
  const at::Tensor number = at::arange(kRows, at::kLong);
  const at::Tensor targets =
      at::where(number.remainder(3).eq(0), number.div(3, "floor").remainder(3), logits.argmax(1));
  EvaluatedRows rows = evaluated_rows(TargetKind::kClasses, logits.softmax(1), targets);
  rows.prediction.logits = logits;
  rows.batch.weights = row_weights();
  return rows;
}

at::Tensor two_class_scores() {
  return 3 * (1.3 * at::arange(kRows, at::kDouble)).sin() + 0.5;
}

at::Tensor two_class_targets() {
  const at::Tensor bound = 5 + 3 * two_class_scores().sign();
  return at::arange(kRows, at::kLong).mul(7).remainder(10).lt(bound).to(at::kLong);
}

EvaluatedRows two_classes(const at::Tensor& p) {
  EvaluatedRows rows =
      evaluated_rows(TargetKind::kClasses, at::stack({1 - p, p}, 1), two_class_targets());
  rows.batch.weights = row_weights();
  return rows;
}

EvaluatedRows two_classes() {
  EvaluatedRows rows = two_classes(two_class_scores().sigmoid());
  rows.prediction.logits = two_class_scores().unsqueeze(1);
  return rows;
}

TEST(Temperature, MinimizesTheNegativeLogLikelihood) {
  const auto stage = fitted("temperature", {}, testing::class_target(3), three_classes());

  EXPECT_NEAR(learned(*stage), 1.8630178686317713, 1e-6);
  EXPECT_NEAR(learned(*fitted("temperature", {}, testing::class_target(2), two_classes())),
              1.5014389272871151, 1e-6);
}

TEST(Temperature, OfEachClassMinimizesIt) {
  const auto stage =
      fitted("temperature", {{"per_class", true}}, testing::class_target(3), three_classes());

  EXPECT_NEAR(learned(*stage, 0), 1.79656344, 1e-6);
  EXPECT_NEAR(learned(*stage, 1), 2.38029457, 1e-6);
  EXPECT_NEAR(learned(*stage, 2), 1.56825854, 1e-6);
}

TEST(Temperature, KeepsTheLikeliestClassAndTheOrderOfRows) {
  const EvaluatedRows rows = three_classes();
  const auto stage = fitted("temperature", {}, testing::class_target(3), rows);
  const Prediction after = stage->apply(rows.prediction, rows.batch);

  EXPECT_TRUE(after.values.argmax(1).equal(rows.prediction.values.argmax(1)));
  EXPECT_TRUE(after.logits.softmax(1).allclose(after.values));
}

TEST(Temperature, StaysFiniteWhereEveryRowIsRight) {
  EvaluatedRows rows = three_classes();
  rows.batch.targets = rows.batch.original_targets = {rows.prediction.values.argmax(1)};

  EXPECT_DOUBLE_EQ(learned(*fitted("temperature", {}, testing::class_target(3), rows)), 0.01);
}

// A mean of several models has no logits.
TEST(Temperature, OfProbabilitiesAloneIsThatOfTheirLogits) {
  EvaluatedRows rows = three_classes();
  rows.prediction.logits = at::Tensor();

  EXPECT_NEAR(learned(*fitted("temperature", {}, testing::class_target(3), rows)),
              1.8630178686317713, 1e-6);
}

TEST(Platt, IsThatOfScikitLearn) {
  const auto stage = fitted("platt", {}, testing::class_target(2), two_classes());

  EXPECT_NEAR(learned(*stage, 0), 0.6000403756494828, 1e-5);
  EXPECT_NEAR(learned(*stage, 1), 0.3617884154750957, 1e-5);
}

TEST(Isotonic, IsThatOfScikitLearn) {
  const EvaluatedRows rows = two_classes((two_class_scores().sigmoid() * 100).round() / 100);
  const auto stage = fitted("isotonic", {}, testing::class_target(2), rows);
  const at::Tensor p =
      at::tensor({0.0, 0.07, 0.2, 0.33, 0.5, 0.61, 0.75, 0.9, 0.97, 1.0}, at::kDouble);
  Prediction others{TargetKind::kClasses, at::stack({1 - p, p}, 1)};

  EXPECT_TRUE(at::allclose(stage->apply(others, Batch()).values.select(1, 1),
                           at::tensor({0.2857142857142857, 0.2857142857142857, 0.3333333333333333,
                                       0.3333333333333333, 0.4523809523809523, 0.5714285714285714,
                                       0.5714285714285714, 0.9473684210526315, 1.0, 1.0},
                                      at::kDouble),
                           0, 1e-12));
}

TEST(Calibration, NamesAClassThatNoHeldOutRowHas) {
  EvaluatedRows rows = two_classes();
  rows.batch.targets = rows.batch.original_targets = {at::zeros({kRows}, at::kLong)};
  for (const char* const name : {"platt", "isotonic"}) {
    try {
      fitted(name, {}, testing::class_target(2), rows);
      FAIL() << name;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("of the 48 held-out rows"));
      EXPECT_THAT(error.what(), HasSubstr("outputs.fraction"));
    }
  }
}

/// The score of a threshold on rows of one weight.
double worth(const json& by, const at::Tensor& p, const at::Tensor& actual, double threshold) {
  const at::Tensor decided = p.ge(threshold);
  const at::Tensor positive = actual.gt(0.5);
  const auto count = [](const at::Tensor& some) { return some.sum().item<double>(); };
  const double tp = count(decided.logical_and(positive));
  const double fp = count(decided.logical_and(positive.logical_not()));
  const double fn = count(positive.logical_and(decided.logical_not()));
  const double tn = static_cast<double>(p.numel()) - tp - fp - fn;
  if (by == "f1")
    return tp > 0 ? 2 * tp / (2 * tp + fp + fn) : 0;
  if (by == "balanced_accuracy")
    return (tp / (tp + fn) + tn / (tn + fp)) / 2;
  if (by == "mcc") {
    const double product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn);
    return product > 0 ? (tp * tn - fp * fn) / std::sqrt(product) : 0;
  }
  return -(fp + 5 * fn);
}

TEST(Threshold, IsTheBestOfAllThatDiffer) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const TaskRandom random(seed);
    const at::Tensor p = (at::rand({60}, at::kDouble) * 20).round() / 20;  // with ties
    at::Tensor actual = at::rand({60}, at::kDouble).lt(p).to(at::kLong);
    actual[0] = 0;
    actual[1] = 1;
    const EvaluatedRows rows =
        evaluated_rows(TargetKind::kClasses, at::stack({1 - p, p}, 1), actual);
    for (const json& by :
         {json("f1"), json("mcc"), json("balanced_accuracy"), kByCost.at("threshold")}) {
      const auto stage = fitted("threshold", {{"threshold", by}}, testing::class_target(2), rows);
      double best = -HUGE_VAL;
      for (double threshold = 0; threshold < 1.02; threshold += 0.025)
        best = std::max(best, worth(by, p, actual, threshold));
      EXPECT_DOUBLE_EQ(worth(by, p, actual, learned(*stage)), best) << by << " " << seed;
    }
  }
}

TEST(Threshold, DecidesWithoutChangingProbabilities) {
  const Prediction before{TargetKind::kClasses,
                          at::tensor({0.8, 0.2, 0.7, 0.3, 0.4, 0.6}, at::kDouble).view({3, 2})};
  const auto stage = plugin().make<OutputStage>("threshold", {{"threshold", 0.3}});
  stage->start(testing::class_target(2));
  const Prediction after = stage->apply(before, Batch());

  EXPECT_TRUE(decided(after).equal(at::tensor({0, 1, 1}, at::kLong)));
  EXPECT_TRUE(after.values.is_same(before.values));
}

TEST(Threshold, IsRefusedForMoreThanTwoClasses) {
  const auto stage = plugin().make<OutputStage>("threshold", kByF1);
  try {
    stage->start(testing::class_target(3));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 3"));
  }
}

// By hand: of 9 rows the ceil(10 * 0.8) = 8th smallest error is 8.
TEST(Conformal, TakesTheQuantileOfOneRowMore) {
  const at::Tensor errors = at::tensor({5.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0}, at::kDouble);
  const EvaluatedRows rows =
      evaluated_rows(TargetKind::kNumbers, at::zeros({9, 1}, at::kDouble), errors.unsqueeze(1));
  const auto stage = fitted("conformal", {{"coverage", 0.8}}, testing::number_target(1), rows);
  const Prediction after = stage->apply(rows.prediction, rows.batch);

  EXPECT_DOUBLE_EQ(learned(*stage), 8);
  EXPECT_EQ(after.extras.at(0).name, "lower");
  EXPECT_DOUBLE_EQ(after.extras.at(0).values[0].item<double>(), -8);
  EXPECT_DOUBLE_EQ(after.extras.at(1).values[0].item<double>(), 8);
}

// By hand: the truth is 2 above and 1 below the interval, and 1 inside; ceil(4 * 0.75) = 3rd: 2.
TEST(Conformal, MovesQuantilesByHowFarTheTruthIsOutside) {
  EvaluatedRows rows = evaluated_rows(TargetKind::kNumbers, at::zeros({3, 1}, at::kDouble),
                                      at::tensor({3.0, -3.0, 0.0}, at::kDouble).unsqueeze(1));
  rows.prediction.extras = {{"q0.1", at::tensor({-1.0, -2.0, -1.0}, at::kDouble).unsqueeze(1), 0.1},
                            {"q0.9", at::tensor({1.0, 2.0, 1.0}, at::kDouble).unsqueeze(1), 0.9}};
  const auto stage = fitted("conformal", {{"coverage", 0.75}}, testing::number_target(1), rows);
  const Prediction after = stage->apply(rows.prediction, rows.batch);

  EXPECT_DOUBLE_EQ(learned(*stage), 2);
  EXPECT_DOUBLE_EQ(after.extras.at(2).values[1].item<double>(), -4);
  EXPECT_DOUBLE_EQ(after.extras.at(3).values[1].item<double>(), 4);
}

TEST(Conformal, SaysHowManyRowsItNeeds) {
  const EvaluatedRows rows = evaluated_rows(TargetKind::kNumbers, at::zeros({18, 1}, at::kDouble),
                                            at::zeros({18, 1}, at::kDouble));
  try {
    fitted("conformal", {{"coverage", 0.95}}, testing::number_target(1), rows);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs 19 held-out rows"));
    EXPECT_THAT(error.what(), HasSubstr("there are 18"));
  }
}

TEST(Conformal, HoldsAGroupWithoutRowsToAll) {
  EvaluatedRows rows = evaluated_rows(
      TargetKind::kNumbers, at::zeros({30, 1}, at::kDouble),
      at::cat({at::arange(1, 11, at::kDouble), at::arange(101, 121, at::kDouble)}).unsqueeze(1));
  rows.batch.groups = at::cat({at::zeros({10}, at::kLong), at::zeros({20}, at::kLong) + 7});
  const auto stage =
      fitted("conformal", {{"coverage", 0.5}, {"by", "group"}}, testing::number_target(1), rows);
  Batch batch;
  batch.groups = at::tensor({7, 0, 3}, at::kLong);
  const Prediction after =
      stage->apply({TargetKind::kNumbers, at::zeros({3, 1}, at::kDouble)}, batch);

  // ceil(21 / 2) = 11th of 20, ceil(11 / 2) = 6th of 10, ceil(31 / 2) = 16th of 30.
  const at::Tensor upper = after.extras.at(1).values.squeeze(1);
  EXPECT_TRUE(upper.equal(at::tensor({111.0, 6.0, 106.0}, at::kDouble))) << upper;
}

/// The share of 2000 new rows that are inside, on average over some data sets of 200 rows.
double mean_coverage(const json& parameters, bool is_classes, bool has_quantiles = false) {
  constexpr int kSets = 20;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < kSets; ++seed) {
    const TaskRandom random(100 + seed);
    const auto rows_of = [&](std::int64_t count) {
      const at::Tensor x = at::randn({count, 3}, at::kDouble);
      if (is_classes) {
        const at::Tensor p = x.mul(1.5).softmax(1);
        const at::Tensor actual =
            at::rand({count, 1}, at::kDouble).gt(p.cumsum(1)).sum(1).clamp(0, 2);
        // The model is too sure.
        return evaluated_rows(TargetKind::kClasses, x.mul(4).softmax(1), actual);
      }
      const at::Tensor y = x.select(1, 0) + at::randn({count}, at::kDouble) * x.select(1, 1).abs();
      EvaluatedRows rows =
          evaluated_rows(TargetKind::kNumbers, x.select(1, 0).unsqueeze(1), y.unsqueeze(1));
      if (has_quantiles) {
        const at::Tensor half = x.select(1, 1).abs().unsqueeze(1);
        rows.prediction.extras = {{"q0.1", rows.prediction.values - half, 0.1},
                                  {"q0.9", rows.prediction.values + half, 0.9}};
      }
      return rows;
    };
    const TargetSpec target = is_classes ? testing::class_target(3) : testing::number_target(1);
    const auto stage = fitted("conformal", parameters, target, rows_of(200));
    EvaluatedRows others = rows_of(2000);
    others.prediction = stage->apply(others.prediction, others.batch);
    const auto coverage =
        plugin().make<MetricComputer>(is_classes ? "set_coverage" : "interval_coverage");
    coverage->start(target);
    testing::update(*coverage, others, target);
    sum += coverage->compute().values.at(0).value;
  }
  return sum / kSets;
}

TEST(Conformal, CoversAsOftenAsItSays) {
  EXPECT_NEAR(mean_coverage({{"coverage", 0.9}}, false), 0.9, 0.015);
  EXPECT_NEAR(mean_coverage({{"coverage", 0.9}}, false, true), 0.9, 0.015);
  EXPECT_NEAR(mean_coverage({{"coverage", 0.9}}, true), 0.9, 0.015);
  EXPECT_NEAR(mean_coverage({{"coverage", 0.9}, {"score", "lac"}}, true), 0.9, 0.015);
  EXPECT_NEAR(mean_coverage({{"coverage", 0.9}, {"by", "class"}}, true), 0.9, 0.015);
}

TEST(Coverage, IsUndefinedWithoutIntervals) {
  const auto coverage = plugin().make<MetricComputer>("interval_coverage");
  coverage->start(testing::number_target(1));
  testing::update(*coverage,
                  evaluated_rows(TargetKind::kNumbers, at::zeros({2, 1}, at::kDouble),
                                 at::zeros({2, 1}, at::kDouble)),
                  testing::number_target(1));

  EXPECT_TRUE(coverage->compute().values.at(0).value.is_undefined());
  EXPECT_THAT(std::string(coverage->compute().values.at(0).value.why()), HasSubstr("outputs"));
}

}  // namespace
}  // namespace treadle
