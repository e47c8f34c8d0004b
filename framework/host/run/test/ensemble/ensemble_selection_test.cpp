#include "ensemble/ensemble_selection.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluation/collected_predictions.h"
#include "lcg_numbers.h"

namespace treadle::internal {
namespace {

using ::testing::ElementsAre;

struct Candidates {
  at::Tensor targets = lcg_numbers(1, 12);
  std::vector<at::Tensor> predictions;

  Candidates() {
    for (std::int64_t i = 0; i < 6; ++i) {
      predictions.push_back(targets +
                            (0.2 + 0.1 * static_cast<double>(i)) * (lcg_numbers(10 + i, 12) - 0.5));
    }
  }
  double error(const at::Tensor& mean) const {
    return (mean - targets).square().mean().item<double>();
  }
  SelectedEnsemble select(std::int64_t size, std::int64_t initial = 0) const {
    return select_ensemble(predictions, size, initial,
                           [&](const at::Tensor& mean) { return error(mean); });
  }
};

std::vector<std::pair<std::size_t, double>> weights_of(const SelectedEnsemble& selected) {
  std::vector<std::pair<std::size_t, double>> weights;
  for (const EnsembleMember& member : selected.members)
    weights.emplace_back(member.candidate, std::round(member.weight * 1e6) / 1e6);
  return weights;
}

// python3 ensemble_selection_reference.py
TEST(EnsembleSelection, AddsWhatHelpsMostAsAnIndependentImplementationDoes) {
  using Weights = std::vector<std::pair<std::size_t, double>>;
  const Candidates candidates;

  EXPECT_EQ(weights_of(candidates.select(1)), (Weights{{0, 1}}));
  EXPECT_NEAR(candidates.select(1).score, 0.002873815405, 1e-12);
  EXPECT_EQ(weights_of(candidates.select(5)), (Weights{{0, 0.4}, {1, 0.2}, {2, 0.2}, {5, 0.2}}));
  EXPECT_NEAR(candidates.select(5).score, 0.001635321729, 1e-12);
  EXPECT_EQ(weights_of(candidates.select(20)),
            (Weights{{0, 0.25}, {1, 0.35}, {2, 0.2}, {4, 0.1}, {5, 0.1}}));
  EXPECT_NEAR(candidates.select(20).score, 0.001256145064, 1e-12);
  EXPECT_EQ(weights_of(candidates.select(10, 4)),
            (Weights{{0, 0.2}, {1, 0.3}, {2, 0.2}, {3, 0.1}, {4, 0.1}, {5, 0.1}}));
  EXPECT_NEAR(candidates.select(10, 4).score, 0.001423240048, 1e-12);
}

TEST(EnsembleSelection, OfEqualCandidatesTheFirstIsAddedAndMoreOfTheSameIsNoGain) {
  const at::Tensor same = at::tensor({1.0, 2.0});

  const SelectedEnsemble selected =
      select_ensemble(std::vector<at::Tensor>{same, same, same}, 10, 1,
                      [](const at::Tensor& mean) { return mean.sum().item<double>(); });

  EXPECT_EQ(weights_of(selected), (std::vector<std::pair<std::size_t, double>>{{0, 1}}));
}

TEST(EnsembleSelection, ACandidateWithoutAScoreIsNotAdded) {
  const double nan = std::numeric_limits<double>::quiet_NaN();

  const SelectedEnsemble selected =
      select_ensemble(std::vector<at::Tensor>{at::tensor({nan}), at::tensor({3.0})}, 2, 2,
                      [](const at::Tensor& mean) { return mean.item<double>(); });

  EXPECT_EQ(weights_of(selected), (std::vector<std::pair<std::size_t, double>>{{1, 1}}));
}

/// Adds a batch whose rows have these numbers, predicted as ten times that.
void add_rows(CollectedPredictions& metric, const std::vector<std::int64_t>& rows) {
  Batch batch;
  batch.rows = at::tensor(rows, at::kLong);
  batch.original_targets = {batch.rows.to(at::kFloat).unsqueeze(1)};
  batch.targets = batch.original_targets;
  const TargetSpec target = number_target("y");
  metric.update({TargetKind::kNumbers, 10 * batch.targets[0]},
                TargetBatch::original(batch, 0, target));
}

std::vector<float> floats(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.reshape(-1).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

TEST(CollectedPredictions, OfSeveralFoldsAreInTheOrderOfTheRows) {
  CollectedPredictions first;
  CollectedPredictions second;
  first.start(number_target("y"));
  second.start(number_target("y"));
  add_rows(first, {4, 0});
  add_rows(first, {2});
  add_rows(second, {3, 1});
  CollectedPredictions restored;
  restored.start(number_target("y"));
  restored.load_state(first.state());

  restored.merge(second);

  const CollectedPredictions::Rows all = restored.collected();
  EXPECT_THAT(floats(all.prediction.values), ElementsAre(0, 10, 20, 30, 40));
  EXPECT_THAT(floats(all.targets), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(all.weights.defined());
}

}  // namespace
}  // namespace treadle::internal
