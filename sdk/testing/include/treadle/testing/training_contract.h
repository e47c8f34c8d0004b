#pragma once

#include <cmath>
#include <limits>
#include <string>

#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/training_case.h>
#include <treadle/testing/training_resume_claims.h>

/// What every TrainingWorkflow must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Training, TrainingContract, ::testing::Values(
///         TrainingCase{"Standard", [] {
///           return plugin().make<TrainingWorkflow>("standard", {{"epochs", 5}, {"batch_size",
///           16}});
///         }}), CaseName());
namespace treadle::testing {

TEST_P(TrainingContract, ThePlanIsAFunctionOfTheConfiguration) {
  const auto fresh = GetParam().make();
  const Whole used;

  const BatchPlan plan = fresh->batch_plan();
  const BatchPlan later = used.rehearsal.workflow().batch_plan();
  EXPECT_EQ(plan.training_batch, later.training_batch);
  EXPECT_EQ(plan.evaluation_batch, later.evaluation_batch);
  EXPECT_EQ(plan.shuffle, later.shuffle);
  EXPECT_EQ(plan.drop_last, later.drop_last);
  EXPECT_GE(plan.training_batch, 1);
  EXPECT_GE(plan.evaluation_batch, 1);
  EXPECT_EQ(fresh->planned_epochs(), used.rehearsal.workflow().planned_epochs());
  EXPECT_GE(fresh->planned_epochs(), 1);
}

TEST_P(TrainingContract, TrainsThePlannedEpochs) {
  const Whole whole;

  const std::int64_t planned = whole.rehearsal.epochs();
  EXPECT_EQ(whole.result.total_epochs, static_cast<std::int64_t>(whole.context.epochs().size()));
  EXPECT_LE(whole.result.total_epochs, planned);
  EXPECT_EQ(whole.result.stop_reason.empty(), whole.result.total_epochs == planned);
  if (!GetParam().may_stop_early) {
    EXPECT_EQ(whole.result.total_epochs, planned);
  }
}

TEST_P(TrainingContract, TellsEachStepInOrder) {
  const Whole whole;

  const std::int64_t per_epoch = whole.rehearsal.steps_per_epoch();
  const auto& steps = whole.context.steps();
  ASSERT_EQ(static_cast<std::int64_t>(steps.size()), whole.result.total_epochs * per_epoch);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(steps[i].epoch, static_cast<std::int64_t>(i) / per_epoch + 1);
    EXPECT_EQ(steps[i].epochs, whole.rehearsal.epochs());
    EXPECT_EQ(steps[i].total_steps, whole.rehearsal.total_steps());
  }
}

TEST_P(TrainingContract, TellsEachEpochAfterItsSteps) {
  const Whole whole;

  const auto& epochs = whole.context.epochs();
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    EXPECT_EQ(epochs[i].epoch, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(epochs[i].epochs, whole.rehearsal.epochs());
    EXPECT_EQ(epochs[i].step, epochs[i].epoch * whole.rehearsal.steps_per_epoch());
    EXPECT_EQ(whole.context.steps_before_epochs()[i], static_cast<std::size_t>(epochs[i].step));
    EXPECT_EQ(epochs[i].learning_rate, whole.rehearsal.rate_of(epochs[i].step));
    EXPECT_GE(epochs[i].seconds, 0);
  }
}

TEST_P(TrainingContract, TheLossGoesDown) {
  const Whole whole({.fixed_epochs = 20});

  const auto& epochs = whole.context.epochs();
  EXPECT_LT(epochs.back().training_loss, 0.5 * epochs.front().training_loss);
  EXPECT_LT(*epochs.back().validation_loss, 0.5 * *epochs.front().validation_loss);
}

TEST_P(TrainingContract, TheTrainingLossIsTheMeanOverTheRowsOfTheEpoch) {
  Whole whole({.learning_rate = 0, .dropout = 0});

  for (const EpochSummary& epoch : whole.context.epochs()) {
    EXPECT_NEAR(epoch.training_loss,
                whole.rehearsal.loss_on(whole.rehearsal.training(), epoch.epoch - 1), 1e-12);
  }
}

TEST_P(TrainingContract, JudgesEveryValidationRowOnceAnEpoch) {
  Whole whole({.learning_rate = 0});

  for (const EpochSummary& epoch : whole.context.epochs()) {
    ASSERT_TRUE(epoch.validation_loss.has_value());
    EXPECT_NEAR(*epoch.validation_loss, whole.rehearsal.loss_on(whole.rehearsal.validation()),
                1e-12);
    ASSERT_EQ(epoch.metrics.size(), 1U);
    EXPECT_EQ(epoch.metrics[0].name, "mae");
  }
  EXPECT_EQ(whole.rehearsal.metric().rows(), row_numbers(0, Rehearsal::kValidationRows));
}

TEST_P(TrainingContract, TrainsWithoutValidationRows) {
  const Whole whole({.has_validation = false});

  for (const EpochSummary& epoch : whole.context.epochs()) {
    EXPECT_FALSE(epoch.validation_loss.has_value());
    EXPECT_TRUE(epoch.metrics.empty());
    EXPECT_GT(epoch.training_loss, 0);
  }
  EXPECT_EQ(whole.result.final_loss, whole.context.epochs().back().training_loss);
}

TEST_P(TrainingContract, FixedEpochsAreTrainedToTheLast) {
  const std::int64_t count = GetParam().make()->planned_epochs() + 2;
  // Contrary rows are what early stopping and best-selection would act on.
  Whole whole({.fixed_epochs = count, .contrary_validation = true});

  EXPECT_EQ(whole.result.total_epochs, count);
  EXPECT_EQ(whole.result.stop_reason, "");
  EXPECT_FALSE(whole.result.selects_best);
  EXPECT_EQ(whole.rehearsal.validate(whole.context).loss, whole.result.final_loss);
}

TEST_P(TrainingContract, TheResultSaysWhatTheHistorySays) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole whole(rehearsed);
    const auto loss_of = [](const EpochSummary& epoch) {
      return epoch.validation_loss.value_or(epoch.training_loss);
    };
    std::int64_t best_epoch = 0;
    for (const EpochSummary& epoch : whole.context.epochs())
      best_epoch = epoch.best ? epoch.epoch : best_epoch;

    EXPECT_EQ(whole.result.final_loss, loss_of(whole.context.epochs().back()));
    ASSERT_GE(best_epoch, 1);
    EXPECT_EQ(whole.result.best_epoch, best_epoch);
    EXPECT_EQ(whole.result.best_loss,
              loss_of(whole.context.epochs()[static_cast<std::size_t>(best_epoch - 1)]));
    EXPECT_GE(whole.result.training_time_seconds, 0);
  }
}

TEST_P(TrainingContract, EndsWithTheWeightsItSays) {
  for (const bool contrary : {false, true}) {
    Whole whole({.contrary_validation = contrary});

    const double loss = whole.rehearsal.validate(whole.context).loss;

    EXPECT_EQ(loss, whole.result.selects_best ? whole.result.best_loss : whole.result.final_loss);
  }
}

TEST_P(TrainingContract, TheSameInputsGiveTheSameBits) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole one(rehearsed);
    at::randn({7});  // what libtorch's own generator has drawn does not matter
    const Whole other(rehearsed);

    expect_same_result(other.result, one.result);
    expect_same_history(other.context.epochs(), one.context.epochs());
    EXPECT_TRUE(same_bits(other.rehearsal.weights(), one.rehearsal.weights()));
  }
}

TEST_P(TrainingContract, DrawsFromTheStreamsOfItsContext) {
  const Whole one;
  Rehearsal other(GetParam().make());
  RecordingContext context{RandomStreams(99)};

  other.train(context);

  EXPECT_FALSE(same_bits(other.weights(), one.rehearsal.weights()));
}

TEST_P(TrainingContract, ALossThatIsNotANumberNamesEpochAndStep) {
  Rehearsal rehearsal(GetParam().make());
  RecordingContext context;
  rehearsal.training().spoil(1, 1);

  const std::string error = training_error(rehearsal, context);

  const std::int64_t step = rehearsal.steps_per_epoch() + 2;
  EXPECT_NE(error.find("epoch 2"), std::string::npos) << error;
  EXPECT_NE(error.find("step " + std::to_string(step)), std::string::npos) << error;
  EXPECT_EQ(static_cast<std::int64_t>(context.steps().size()), step - 1);
}

TEST_P(TrainingContract, NoCheckpointHoldsWeightsThatAreNotNumbers) {
  const auto expect_sound = [](Rehearsal& rehearsal, std::int64_t stop) {
    RecordingContext context;
    context.stop_after_step(stop);
    training_error(rehearsal, context);
    for (const RecordingContext::Saved& saved : context.checkpoints())
      EXPECT_TRUE(is_finite(saved.state)) << "step " << saved.position.steps_done;
  };
  // With a stop, which is a reason to save, right after the first step, and without.
  for (const std::int64_t stop : {1, 1000000}) {
    Rehearsal spoiled(GetParam().make());
    spoiled.training().spoil(0, 0);
    expect_sound(spoiled, stop);
    Rehearsal steep(GetParam().make(), {.steep_loss = true});
    expect_sound(steep, stop);
    // The loss and its gradient are numbers; the weights after the update are not.
    Rehearsal hasty(GetParam().make(), {.learning_rate = std::numeric_limits<double>::infinity()});
    expect_sound(hasty, stop);
  }
}

TEST_P(TrainingContract, GradientsThatAreNotNumbersUpdateNothing) {
  Rehearsal rehearsal(GetParam().make(), {.steep_loss = true});
  RecordingContext context;

  training_error(rehearsal, context);

  EXPECT_TRUE(is_finite(rehearsal.weights()));
}

TEST_P(TrainingContract, AFullDiskIsAStorageError) {
  Rehearsal rehearsal(GetParam().make());
  RecordingContext context;
  context.fill_the_disk();

  EXPECT_THROW(rehearsal.train(context), StorageError);
}

TEST_P(TrainingContract, ValidatingChangesNothing) {
  Rehearsal rehearsal(GetParam().make());
  RecordingContext context;
  const StateDict before = rehearsal.weights();
  for (const bool training : {true, false}) {
    rehearsal.model().train(training);
    rehearsal.model().hidden().train(false);  // a layer that somebody froze

    rehearsal.validate(context);

    EXPECT_EQ(rehearsal.model().is_training(), training);
    EXPECT_FALSE(rehearsal.model().hidden().is_training());
    EXPECT_TRUE(same_bits(rehearsal.weights(), before));
  }
  for (const at::Tensor& parameter : rehearsal.model().parameters()) {
    EXPECT_TRUE(parameter.requires_grad());
    EXPECT_FALSE(parameter.grad().defined());
  }
  EXPECT_TRUE(c10::GradMode::is_enabled());
  EXPECT_TRUE(context.steps().empty() && context.epochs().empty() && context.checkpoints().empty());
}

TEST_P(TrainingContract, ValidatingJudgesEveryRowOnce) {
  Rehearsal rehearsal(GetParam().make());
  RecordingContext context;
  const double expected = rehearsal.loss_on(rehearsal.validation());
  for (const char* time : {"first", "second"}) {
    SCOPED_TRACE(time);

    const ValidationResult result = rehearsal.validate(context);

    EXPECT_NEAR(result.loss, expected, 1e-12);
    EXPECT_EQ(result.sample_count, Rehearsal::kValidationRows);
    EXPECT_EQ(rehearsal.metric().rows(), row_numbers(0, Rehearsal::kValidationRows));
    ASSERT_EQ(result.metrics.values.size(), 1U);
    EXPECT_EQ(result.metrics.values[0].value, rehearsal.metric().compute().values[0].value);
  }
}

TEST_P(TrainingContract, MetricsJudgeInTheDatasUnits) {
  Whole whole({.fixed_epochs = 20});

  const MetricValue error = whole.rehearsal.validate(whole.context).metrics.values.at(0);

  // In the model's units the root mean square is sqrt(2 * loss), in the data's a tenth of it. A
  // mean of absolute values is no larger, and weights between 0.5 and 1.5 change it by less than
  // sqrt(3).
  EXPECT_LT(error.value, std::sqrt(3.0) / 10 * std::sqrt(2 * whole.result.final_loss));
}

}  // namespace treadle::testing
