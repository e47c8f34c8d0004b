#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/core/validation/metric_computer.h>
#include <treadle/testing/model/metric_contract.h>
#include <treadle/testing/support/targets.h>

#include "this_plugin.h"

namespace treadle::testing {
namespace {

using Case = MetricCase;

MetricCase case_of(std::string name, std::string component, TargetSpec target,
                   nlohmann::json parameters = {}) {
  return {std::move(name),
          [component, parameters] { return plugin().make<MetricComputer>(component, parameters); },
          std::move(target)};
}

// Single precision moves differences across the edges of bins.
MetricCase residuals_case(std::string name, std::int64_t width,
                          MetricCase::Positions positions = {}) {
  MetricCase one =
      case_of(std::move(name), "residuals", MetricCase::numbers(width, std::move(positions)));
  one.single_precision_tolerance = 2;
  return one;
}

MetricCase pinball_case(std::string name, TargetSpec target) {
  MetricCase one = case_of(std::move(name), "pinball", std::move(target));
  one.extras = {"q0.1", "q0.9"};
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Metrics, MetricContract,
    ::testing::Values(
        case_of("Accuracy", "accuracy", Case::classes(3)),
        case_of("AccuracyOfPixels", "accuracy", Case::classes(3, {2, 3})),
        case_of("AccuracyOfLabels", "accuracy", Case::labels(3)),
        case_of("AccuracyOfLabelsAtSteps", "accuracy", Case::labels(2, {kVaries})),
        case_of("MacroPrecision", "macro_precision", Case::classes(3)),
        case_of("MacroPrecisionOfLabels", "macro_precision", Case::labels(3)),
        case_of("MacroRecall", "macro_recall", Case::classes(3)),
        case_of("MacroRecallOfSteps", "macro_recall", Case::classes(2, {kVaries})),
        case_of("MacroF1", "macro_f1", Case::classes(3)),
        case_of("MacroF1OfLabelsAtSteps", "macro_f1", Case::labels(3, {kVaries})),
        case_of("MeanIouOfPixels", "mean_iou", Case::classes(3, {2, 3})),
        case_of("MeanIouPerClass", "mean_iou", Case::classes(3, {kVaries}), {{"per_class", true}}),
        case_of("RecallPerClass", "macro_recall", Case::classes(3), {{"per_class", true}}),
        case_of("RecallPerLabel", "macro_recall", Case::labels(3), {{"per_class", true}}),
        case_of("ConfusionMatrix", "confusion_matrix", Case::classes(3)),
        case_of("ConfusionMatrixOfSteps", "confusion_matrix", Case::classes(3, {kVaries})),
        case_of("AucOfTwo", "auc", Case::classes(2)),
        case_of("AucOfThree", "auc", Case::classes(3)),
        case_of("AucOfSteps", "auc", Case::classes(3, {kVaries})),
        case_of("LogLoss", "log_loss", Case::classes(3)),
        case_of("LogLossOfSteps", "log_loss", Case::classes(3, {kVaries})),
        case_of("LogLossOfDistributions", "log_loss", Case::distribution(3)),
        case_of("Perplexity", "perplexity", Case::classes(3, {kVaries})),
        case_of("BitsPerByte", "bits_per_byte", Case::classes(3, {kVaries})),
        case_of("KlDiv", "kl_div", Case::distribution(3)),
        case_of("KlDivOfSteps", "kl_div", Case::distribution(2, {kVaries})),
        case_of("HammingLoss", "hamming_loss", Case::labels(3)),
        case_of("HammingLossOfSteps", "hamming_loss", Case::labels(3, {kVaries})),
        case_of("Mse", "mse", Case::numbers(1)),
        case_of("MseOfPixels", "mse", Case::numbers(3, {2, 3})),
        case_of("Rmse", "rmse", Case::numbers(2)),
        case_of("RmseOfSteps", "rmse", Case::numbers(2, {kVaries})),
        case_of("Mae", "mae", Case::numbers(2)),
        case_of("MaeOfSteps", "mae", Case::numbers(1, {kVaries})),
        case_of("R2", "r2", Case::numbers(1)), case_of("R2OfTwo", "r2", Case::numbers(2)),
        case_of("R2OfSteps", "r2", Case::numbers(2, {kVaries})),
        pinball_case("Pinball", Case::numbers(1)),
        pinball_case("PinballOfSteps", Case::numbers(2, {kVaries})), residuals_case("Residuals", 1),
        residuals_case("ResidualsOfTwo", 2), residuals_case("ResidualsOfSteps", 1, {kVaries})),
    CaseName());

MetricCase binned_case(std::string name, std::string component, TargetSpec target,
                       nlohmann::json parameters = {}) {
  MetricCase one =
      case_of(std::move(name), std::move(component), std::move(target), std::move(parameters));
  one.single_precision_tolerance = 2;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    OfClasses, MetricContract,
    ::testing::Values(
        case_of("Precision", "precision", Case::classes(2)),
        case_of("PrecisionOfAClass", "precision", Case::classes(3), {{"class", "class-1"}}),
        case_of("Recall", "recall", Case::classes(2, {kVaries})),
        case_of("RecallOfALabel", "recall", Case::labels(3), {{"class", "class-1"}}),
        case_of("F1", "f1", Case::classes(3)),
        case_of("F1OfPixels", "f1", Case::classes(3, {2, 3}), {{"average", "weighted"}}),
        case_of("FBeta", "f_beta", Case::labels(3), {{"beta", 0.5}, {"average", "micro"}}),
        case_of("Specificity", "specificity", Case::classes(2)),
        case_of("SpecificityOfLabelsAtSteps", "specificity", Case::labels(3, {kVaries})),
        case_of("Mcc", "mcc", Case::classes(3)),
        case_of("MccOfSteps", "mcc", Case::classes(2, {kVaries})),
        case_of("BalancedAccuracy", "balanced_accuracy", Case::classes(3)),
        case_of("CohenKappa", "cohen_kappa", Case::classes(3)),
        case_of("CohenKappaOfSteps", "cohen_kappa", Case::classes(4, {kVaries}),
                {{"weights", "quadratic"}}),
        case_of("TopKAccuracy", "top_k_accuracy", Case::classes(4)),
        case_of("TopKAccuracyOfSteps", "top_k_accuracy", Case::classes(5, {kVaries}), {{"k", 3}}),
        case_of("AveragePrecision", "average_precision", Case::classes(2)),
        case_of("AveragePrecisionOfThree", "average_precision", Case::classes(3, {kVaries}),
                {{"average", "weighted"}}),
        case_of("AveragePrecisionOfAClass", "average_precision", Case::classes(3),
                {{"class", "class-0"}}),
        case_of("AveragePrecisionOfLabels", "average_precision", Case::labels(3, {kVaries}),
                {{"average", "micro"}}),
        case_of("Brier", "brier", Case::classes(2)),
        case_of("BrierOfThree", "brier", Case::classes(3, {kVaries}))),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    OfProbabilities, MetricContract,
    ::testing::Values(binned_case("Ece", "ece", Case::classes(3)),
                      binned_case("EceByQuantiles", "ece", Case::classes(2, {kVaries}),
                                  {{"strategy", "quantile"}, {"bins", 6}}),
                      binned_case("Reliability", "reliability", Case::classes(2)),
                      binned_case("ReliabilityByQuantiles", "reliability",
                                  Case::classes(3, {kVaries}),
                                  {{"strategy", "quantile"}, {"bins", 4}}),
                      case_of("Curves", "curves", Case::classes(2)),
                      case_of("CurvesOfThree", "curves", Case::classes(3, {kVaries})),
                      binned_case("ScoreHistogram", "score_histogram", Case::classes(2, {kVaries})),
                      case_of("Thresholds", "thresholds", Case::classes(2)),
                      case_of("ThresholdsOfSteps", "thresholds", Case::classes(2, {kVaries}),
                              {{"costs", {{"false_positive", 1}, {"false_negative", 5}}}})),
    CaseName());

MetricCase coverage_case(std::string name, TargetSpec target, nlohmann::json parameters = {}) {
  MetricCase one =
      case_of(std::move(name), "quantile_coverage", std::move(target), std::move(parameters));
  one.extras = {"q0.1", "q0.9"};
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    OfNumbers, MetricContract,
    ::testing::Values(case_of("Mape", "mape", Case::numbers(1)),
                      case_of("MapeOfSteps", "mape", Case::numbers(2, {kVaries})),
                      case_of("Deviation", "deviation", Case::numbers(1)),
                      case_of("DeviationOfSteps", "deviation", Case::numbers(2, {kVaries})),
                      coverage_case("QuantileCoverage", Case::numbers(1)),
                      coverage_case("QuantileCoverageOfOne", Case::numbers(2, {kVaries}),
                                    {{"quantiles", {0.9}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
