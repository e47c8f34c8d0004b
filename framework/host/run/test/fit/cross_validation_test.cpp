#include "fit/cross_validation.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/core/validation/set_aside.h>

namespace treadle::internal {
namespace {

/// How a fold ended.
struct Ended {
  std::int64_t best_epoch;
  std::int64_t total_epochs;
  bool selects_best;
};

CompletedFit result_of(const Ended& fold) {
  CompletedFit result;
  result.result.weights.are_best = fold.selects_best;
  result.result.weights.epoch = fold.selects_best ? fold.best_epoch : fold.total_epochs;
  return result;
}

/// The epochs of the refit after these folds, of a document that plans `planned`.
std::int64_t epochs_of_refit(const std::vector<Ended>& folds, std::optional<std::int64_t> planned) {
  ValidationPlan plan;
  for (std::size_t i = 0; i < folds.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    plan.folds.push_back({"fold-" + std::to_string(i + 1), {row + 2}, {row}});
  }
  plan.refit = refit_on({0, 1});
  TrainingPlan training;
  training.epochs = planned;
  CrossValidation validation(plan, training);
  const FitPlanner::Orders orders = validation.next();
  for (std::size_t i = 0; i < folds.size(); ++i)
    validation.completed(orders.start[i].id, result_of(folds[i]));
  return orders.start.back().epochs();
}

TEST(EpochsOfRefit, AreThoseThatTheFoldsEndedWithOnAverage) {
  EXPECT_EQ(epochs_of_refit({{4, 9, true}, {8, 13, true}}, 20), 6);
  EXPECT_EQ(epochs_of_refit({{4, 9, false}, {8, 13, false}}, std::nullopt), 11);
}

TEST(EpochsOfRefit, AreTheDocumentsWhereNoFoldSelectsAnEpoch) {
  EXPECT_EQ(epochs_of_refit({{4, 20, false}, {8, 20, false}}, 20), 20);
}

// Such a fold ends with its last weights, whatever its loss was the least after.
TEST(EpochsOfRefit, CountAllEpochsOfAFoldThatKeptNoWeights) {
  EXPECT_EQ(epochs_of_refit({{4, 9, true}, {1, 20, false}}, 20), 12);
  EXPECT_EQ(epochs_of_refit({{1, 20, false}, {4, 9, true}}, 20), 12);
}

}  // namespace
}  // namespace treadle::internal
