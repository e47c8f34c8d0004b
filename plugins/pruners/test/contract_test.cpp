// The contract of all pruners.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/testing/search/pruner_contract.h>

#include "made.h"

namespace treadle::pruners {
namespace {

using nlohmann::json;
using testing::CaseName;
using testing::PrunerCase;
using testing::PrunerContract;

PrunerCase judging(const std::string& name, const std::string& pruner,
                   const json& parameters = {}) {
  return {name, [pruner, parameters] { return make(pruner, parameters); }};
}

/// Each trial by itself, so that all may be pruned.
PrunerCase absolute(const std::string& name, const std::string& pruner, const json& parameters) {
  PrunerCase one = judging(name, pruner, parameters);
  one.completes = false;
  return one;
}

PrunerCase halving(const std::string& name, const std::string& pruner,
                   const json& parameters = {}) {
  PrunerCase one = judging(name, pruner, parameters);
  one.pauses = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Judging, PrunerContract,
    ::testing::Values(
        judging("Median", "median"),
        judging("MedianLate", "median",
                {{"n_startup_trials", 0}, {"n_warmup_steps", 3}, {"interval_steps", 4}}),
        judging("Percentile", "percentile"),
        judging("PercentileOfThree", "percentile", {{"percentile", 60}, {"n_min_trials", 3}}),
        absolute("Threshold", "threshold", {{"upper", 0.65}}),
        absolute("ThresholdLate", "threshold",
                 {{"upper", 0.6}, {"n_warmup_steps", 9}, {"interval_steps", 5}}),
        absolute("Patient", "patient", {{"min_delta", 0.02}, {"patience", 10}}),
        judging("PatientMedian", "patient", {{"pruner", {{"use", "median"}}}, {"patience", 2}})),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Halving, PrunerContract,
    ::testing::Values(
        halving("Asha", "asha"),
        halving("AshaByThree", "asha", {{"reduction_factor", 3}, {"min_early_stopping_rate", 1}}),
        halving("AshaByTwo", "asha", {{"reduction_factor", 2}, {"min_resource", 3}}),
        halving("SuccessiveHalving", "successive_halving"),
        halving("SuccessiveHalvingOfNine", "successive_halving",
                {{"bracket_size", 9}, {"reduction_factor", 3}}),
        halving("Hyperband", "hyperband", {{"max_resource", 27}}),
        halving("HyperbandByTwo", "hyperband",
                {{"max_resource", 20}, {"min_resource", 3}, {"reduction_factor", 2}}),
        halving("PatientAsha", "patient", {{"pruner", {{"use", "asha"}}}, {"patience", 1}})),
    CaseName());

}  // namespace
}  // namespace treadle::pruners
