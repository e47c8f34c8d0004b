#pragma once

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/training_case.h>

/// The claims of TrainingContract that are about checkpoints, stops and going on.
namespace treadle::testing {

/// In the first epoch, around an epoch's end, and just before the end of the training.
inline std::set<std::int64_t> stops_in(const RecordingContext& whole, std::int64_t per_epoch) {
  const auto last = static_cast<std::int64_t>(whole.steps().size()) - 1;
  std::set<std::int64_t> steps;
  for (const std::int64_t step : {std::int64_t{1}, per_epoch - 1, per_epoch, per_epoch + 1, last}) {
    if (step >= 1 && step <= last)
      steps.insert(step);
  }
  return steps;
}

TEST_P(TrainingContract, CheckpointsSayWhereTheTrainingIs) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole whole(rehearsed);
    const std::int64_t per_epoch = whole.rehearsal.steps_per_epoch();
    const auto& checkpoints = whole.context.checkpoints();

    ASSERT_FALSE(checkpoints.empty());
    for (const RecordingContext::Saved& saved : checkpoints) {
      const TrainingPosition& position = saved.position;
      // A host cuts the history back to what the checkpoint says: both must be of one mind.
      EXPECT_EQ(position.steps_done, static_cast<std::int64_t>(saved.steps_told));
      EXPECT_EQ(position.epochs_done, static_cast<std::int64_t>(saved.epochs_told));
      EXPECT_EQ(position.epochs_done, position.steps_done / per_epoch);
      EXPECT_EQ(position.at_epoch_end, position.steps_done % per_epoch == 0);
      EXPECT_EQ(position.finished, position.epochs_done == whole.result.total_epochs);
      EXPECT_GE(saved.keep, 1);
    }
    EXPECT_TRUE(checkpoints.back().position.finished);
  }
}

TEST_P(TrainingContract, AStopAfterAnyStepIsSavedAndChangesNothing) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole whole(rehearsed);
    for (const std::int64_t step : stops_in(whole.context, whole.rehearsal.steps_per_epoch())) {
      SCOPED_TRACE("stopped after step " + std::to_string(step));
      Rehearsal stopped(GetParam().make(), rehearsed);
      RecordingContext first;
      first.stop_after_step(step);

      EXPECT_THROW(stopped.train(first), Interrupted);

      ASSERT_FALSE(first.checkpoints().empty());
      EXPECT_EQ(first.checkpoints().back().position.steps_done, step);
      EXPECT_EQ(static_cast<std::int64_t>(first.steps().size()), step);
      RecordingContext second(first, first.checkpoints().back());
      expect_same_end(second, rehearsed, whole);
    }
  }
}

TEST_P(TrainingContract, AStopBetweenTwoEpochsIsSavedAndChangesNothing) {
  const Whole whole;
  Rehearsal stopped(GetParam().make());
  RecordingContext first;
  first.stop_after_epoch(1);

  EXPECT_THROW(stopped.train(first), Interrupted);

  ASSERT_FALSE(first.checkpoints().empty());
  EXPECT_EQ(first.checkpoints().back().position.epochs_done, 1);
  RecordingContext second(first, first.checkpoints().back());
  expect_same_end(second, {}, whole);
}

TEST_P(TrainingContract, AStopAskedForBeforehandCostsNoMoreThanAStep) {
  Rehearsal rehearsal(GetParam().make());
  RecordingContext context;
  context.stop_now();

  EXPECT_THROW(rehearsal.train(context), Interrupted);

  EXPECT_LE(context.steps().size(), 1U);
  EXPECT_EQ(context.checkpoints().size(), context.steps().size());
}

TEST_P(TrainingContract, MayBeStoppedAfterEverySingleStep) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole whole(rehearsed);
    auto context = std::make_unique<RecordingContext>();
    for (std::size_t step = 1; step < whole.context.steps().size(); ++step) {
      Rehearsal rehearsal(GetParam().make(), rehearsed);
      context->stop_after_step(static_cast<std::int64_t>(step));
      EXPECT_THROW(rehearsal.train(*context), Interrupted);
      ASSERT_FALSE(context->checkpoints().empty());
      context = std::make_unique<RecordingContext>(*context, context->checkpoints().back());
    }

    expect_same_end(*context, rehearsed, whole);
  }
}

TEST_P(TrainingContract, EveryCheckpointLeadsToTheSameEnd) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole whole(rehearsed);
    for (const RecordingContext::Saved& saved : whole.context.checkpoints()) {
      SCOPED_TRACE("continued from step " + std::to_string(saved.position.steps_done));
      RecordingContext context(whole.context, saved);

      expect_same_end(context, rehearsed, whole);
    }
  }
}

TEST_P(TrainingContract, AFinishedTrainingIsNotTrainedAgain) {
  const Whole whole;
  ASSERT_FALSE(whole.context.checkpoints().empty());
  RecordingContext context(whole.context, whole.context.checkpoints().back());

  expect_same_end(context, {}, whole);

  EXPECT_EQ(context.steps().size(), whole.context.steps().size());
}

TEST_P(TrainingContract, RefusesAnEmptyState) {
  Rehearsal rehearsal(GetParam().make());
  RecordingContext context;
  context.resume_from(StateDict());

  EXPECT_THROW(rehearsal.train(context), StorageError);
}

}  // namespace treadle::testing
