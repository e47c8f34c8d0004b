#include <treadle/testing/training/training_contract.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/rehearsal.h>
#include <treadle/testing/support/whole_training.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class TrainingClaims : public ::testing::WithParamInterface<TrainingCase> {
 protected:
  static std::unique_ptr<Rehearsal> rehearsal(Rehearsed rehearsed = {}) {
    rehearsed.make_model = GetParam().make_model;
    return std::make_unique<Rehearsal>(GetParam().make(), rehearsed);
  }
};

}  // namespace

LINKS_CLAIMS_OF(Training)

CLAIM(Training, TrainsThePlannedEpochs) {
  for (const std::int64_t epochs : {1, 2, 5}) {
    const Whole whole(rehearsal({.epochs = epochs}));

    EXPECT_EQ(whole.result.total_epochs, static_cast<std::int64_t>(whole.context.epochs().size()));
    EXPECT_LE(whole.result.total_epochs, epochs);
    EXPECT_EQ(whole.result.stop_reason.empty(), whole.result.total_epochs == epochs);
    if (!GetParam().may_stop_early) {
      EXPECT_EQ(whole.result.total_epochs, epochs);
    }
  }
}

CLAIM(Training, ARefitIsTrainedToItsLastEpoch) {
  const Whole whole(rehearsal({.epochs = 6, .is_refit = true, .has_validation = false}));

  EXPECT_EQ(whole.result.total_epochs, 6);
  EXPECT_EQ(whole.result.stop_reason, "");
}

CLAIM(Training, TheLossGoesDown) {
  const auto untrained = rehearsal();
  const double train_loss = untrained->loss_on(untrained->training());
  const double val_loss = untrained->loss_on(untrained->validation());

  const Whole whole(rehearsal({.epochs = 20, .is_refit = true}));

  const EpochSummary& last = whole.context.epochs().back();
  EXPECT_LT(last.train_loss, GetParam().loss_falls_to * train_loss);
  EXPECT_LT(*last.val_loss, GetParam().loss_falls_to * val_loss);
}

CLAIM(Training, TheSameInputsGiveTheSameBits) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole one(rehearsal(rehearsed));
    at::randn({7});  // what libtorch's own generator has drawn does not matter
    const Whole other(rehearsal(rehearsed));

    expect_same_result(other.result, one.result);
    expect_same_history(other.context.epochs(), one.context.epochs());
    EXPECT_TRUE(same_bits(other.rehearsal->weights(), one.rehearsal->weights()));
  }
}

CLAIM(Training, StopsAfterEveryStepChangeNothing) {
  for (const Rehearsed& rehearsed : situations())
    expect_stops_after_every_step_change_nothing([&] { return rehearsal(rehearsed); });
}

CLAIM(Training, EveryCheckpointLeadsToTheSameEnd) {
  for (const Rehearsed& rehearsed : situations())
    expect_every_checkpoint_leads_to_the_same_end([&] { return rehearsal(rehearsed); });
}

CLAIM(Training, AStopCostsNoMoreThanAStep) {
  const auto stopped = rehearsal();
  RecordingContext context;
  context.stop_now();

  EXPECT_THROW(stopped->train(context), Interrupted);

  EXPECT_LE(context.steps().size(), 1U);
}

CLAIM(Training, AStopBetweenTwoEpochsIsSaved) {
  if (Whole(rehearsal()).context.epochs().size() < 2)
    GTEST_SKIP() << "it trains one epoch";
  const auto stopped = rehearsal();
  RecordingContext context;
  context.stop_after_epoch(1);

  EXPECT_THROW(stopped->train(context), Interrupted);

  ASSERT_FALSE(context.checkpoints().empty());
  EXPECT_EQ(context.checkpoints().back().position.epochs_done, 1);
}

CLAIM(Training, AFinishedTrainingIsNotTrainedAgain) {
  const Whole whole(rehearsal());
  RecordingContext context(whole.context, whole.context.checkpoints().back());

  expect_same_end(
      context, [] { return rehearsal(); }, whole);

  EXPECT_EQ(context.steps().size(), whole.context.steps().size());
}

CLAIM(Training, WhatTheSessionThrowsPasses) {
  if (GetParam().make()->needs().updates) {  // else no step can diverge
    const auto spoiled = rehearsal();
    RecordingContext context;
    spoiled->training().spoil(1, 1);
    EXPECT_THROW(spoiled->train(context), TrainingError);
  }

  const auto unsaved = rehearsal();
  RecordingContext full;
  full.fill_the_disk();
  EXPECT_THROW(unsaved->train(full), StorageError);
}

}  // namespace treadle::testing
