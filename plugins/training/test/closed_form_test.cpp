// The weights are those of ridge_reference.py (scikit-learn 1.2).
#include "closed_form.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/whole_training.h>

namespace treadle::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<TrainingWorkflow> closed_form(double alpha = 2.5) {
  return std::make_unique<ClosedFormTraining>(Config(nlohmann::json{{"alpha", alpha}}));
}

/// As in ridge_reference.py.
LayerRows reference_rows(bool has_bias) {
  const at::Tensor i = at::arange(150, at::kDouble);
  const at::Tensor row = at::arange(50, at::kDouble);
  LayerRows rows;
  rows.features = ((i * 1.3).sin() + i.remainder(3).eq(0) * 100.0).view({50, 3});
  const at::Tensor line =
      at::matmul(rows.features, at::tensor({1.0, -2.0, 0.5}, at::kDouble)) + (row * 2.1).cos();
  rows.targets = at::stack({line, (row * 0.7).sin()}, 1);
  rows.has_bias = has_bias;
  return rows;
}

RidgeSums::Solution solved(const LayerRows& rows, std::int64_t batch, double alpha = 2.5) {
  RidgeSums sums(alpha);
  for (std::int64_t begin = 0; begin < rows.features.size(0); begin += batch) {
    const std::int64_t count = std::min(batch, rows.features.size(0) - begin);
    const auto part = [&](const at::Tensor& of) {
      return of.defined() ? of.narrow(0, begin, count) : of;
    };
    sums.add({part(rows.features), part(rows.targets), part(rows.weights), rows.has_bias});
  }
  return sums.solution();
}

void expect_all_near(const at::Tensor& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.numel(), static_cast<std::int64_t>(expected.size()));
  const at::Tensor flat = got.reshape({-1});
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(flat[static_cast<std::int64_t>(i)].item<double>(), expected[i], 1e-9) << i;
}

TEST(ClosedForm, EqualsScikitLearnsRidge) {
  const RidgeSums::Solution solution = solved(reference_rows(true), 16);

  expect_all_near(solution.weight,
                  {-0.13039533264896944, -1.2207581813463064, -0.5227074344390705,
                   -0.002370874500906497, -0.0061298547062276386, -0.0009085834062102857});
  expect_all_near(solution.bias, {113.04641222229515, 0.29350972855490226});
}

TEST(ClosedForm, RowsCountByTheirWeights) {
  LayerRows rows = reference_rows(true);
  rows.weights = at::arange(50, at::kDouble).remainder(4) + 0.5;

  const RidgeSums::Solution solution = solved(rows, 16);

  expect_all_near(solution.weight,
                  {-0.13516028196699015, -1.2076244839243742, -0.5109159877692925,
                   -0.02368596478534266, 0.14037795981858645, 0.09878784441769635});
  expect_all_near(solution.bias, {113.51116413674809, 2.4327679731917486});
}

TEST(ClosedForm, ALayerWithoutBiasIsALineThroughTheOrigin) {
  const RidgeSums::Solution solution = solved(reference_rows(false), 16);

  expect_all_near(solution.weight,
                  {1.0000597938551266, -1.7399401195046507, 0.4837143660367689,
                   0.0005641994284744911, -0.007477840429470352, 0.0017044547580486013});
  EXPECT_FALSE(solution.bias.defined());
}

TEST(ClosedForm, DoesNotDependOnHowBatchesAreCut) {
  const RidgeSums::Solution whole = solved(reference_rows(true), 50);

  for (const std::int64_t batch : {1, 3, 20}) {
    const RidgeSums::Solution cut = solved(reference_rows(true), batch);
    EXPECT_TRUE(cut.weight.allclose(whole.weight, 1e-10, 1e-12)) << batch;
    EXPECT_TRUE(cut.bias.allclose(whole.bias, 1e-10, 1e-12)) << batch;
  }
}

TEST(ClosedForm, NamesFeaturesThatDependOnEachOther) {
  LayerRows rows = reference_rows(true);
  rows.features = rows.features.narrow(1, 0, 1).repeat({1, 2});
  try {
    solved(rows, 50, 0);
    FAIL() << "no error";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("raise training.alpha above 0"));
  }
}

// --- With the session of a run

MakeRehearsal rehearsed(Rehearsed rehearsed) {
  rehearsed.epochs = 1;
  return [rehearsed] { return std::make_unique<Rehearsal>(closed_form(0.1), rehearsed); };
}

TEST(ClosedForm, TrainsTheLastLayerAndNothingElse) {
  const auto rehearsal = rehearsed({})();
  const StateDict before = rehearsal->weights();
  const double untrained = rehearsal->loss_on(rehearsal->training());
  RecordingContext context;

  const engine::TrainingResult result = rehearsal->train(context);

  const StateDict after = rehearsal->weights();
  for (const auto& [name, tensor] : before.tensors()) {
    EXPECT_EQ(at::equal(after.tensor(name), tensor), name.find("output") == std::string::npos)
        << name;
  }
  EXPECT_EQ(result.total_epochs, 1);
  EXPECT_EQ(static_cast<std::int64_t>(context.steps().size()), rehearsal->steps_per_epoch());
  ASSERT_EQ(context.epochs().size(), 1U);
  EXPECT_NEAR(context.epochs()[0].train_loss, rehearsal->loss_on(rehearsal->training()), 1e-12);
  EXPECT_NEAR(*context.epochs()[0].val_loss, rehearsal->loss_on(rehearsal->validation()), 1e-12);
  EXPECT_LT(context.epochs()[0].train_loss, 0.1 * untrained);
}

// Least squares: any other weights have a larger sum of squares.
TEST(ClosedForm, HasTheLeastLoss) {
  const auto rehearsal =
      std::make_unique<Rehearsal>(closed_form(0), Rehearsed{.epochs = 1, .dropout = 0});
  RecordingContext context;
  rehearsal->train(context);
  const double least = rehearsal->loss_on(rehearsal->training());

  const at::NoGradGuard no_gradients;
  for (const auto& parameter : rehearsal->model().named_parameters()) {
    if (parameter.key().find("output") == std::string::npos)
      continue;
    for (const double change : {-0.01, 0.01}) {
      parameter.value().add_(change);
      EXPECT_GT(rehearsal->loss_on(rehearsal->training()), least) << parameter.key();
      parameter.value().sub_(change);
    }
  }
}

TEST(ClosedForm, StopsAfterEveryStepChangeNothing) {
  expect_stops_after_every_step_change_nothing(rehearsed({}));
  expect_stops_after_every_step_change_nothing(rehearsed({.has_validation = false}));
}

TEST(ClosedForm, EveryCheckpointLeadsToTheSameEnd) {
  expect_every_checkpoint_leads_to_the_same_end(
      rehearsed({.checkpoint_every = {1, Duration::Unit::kSteps}}));
}

TEST(ClosedForm, MoreEpochsEndAfterTheFirst) {
  const Whole whole(std::make_unique<Rehearsal>(closed_form(), Rehearsed{.epochs = 5}));

  EXPECT_EQ(whole.result.total_epochs, 1);
  EXPECT_THAT(whole.result.stop_reason, HasSubstr("computed from all rows"));
}

TEST(ClosedForm, SaysWhatTheModelMustEndWith) {
  Rehearsal rehearsal(closed_form(), Rehearsed{.epochs = 1, .keeps_state = true});
  RecordingContext context;
  try {
    rehearsal.train(context);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("must be a \"head\" or a \"dense\""));
  }
}

}  // namespace
}  // namespace treadle::testing
