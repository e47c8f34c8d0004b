#include <treadle/engine/session.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/testing/support/whole_training.h>

namespace treadle::testing {
namespace {

std::unique_ptr<Rehearsal> training(const Rehearsed& rehearsed = {}) {
  return std::make_unique<Rehearsal>(rehearsed);
}

TEST(Session, TellsEachStepInOrder) {
  const Whole whole(training());

  const std::int64_t per_epoch = whole.rehearsal->steps_per_epoch();
  const auto& steps = whole.context.steps();
  ASSERT_EQ(static_cast<std::int64_t>(steps.size()), whole.result.total_epochs * per_epoch);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(steps[i].epoch, static_cast<std::int64_t>(i) / per_epoch + 1);
    EXPECT_EQ(steps[i].epochs, whole.rehearsal->epochs());
    EXPECT_EQ(steps[i].total_steps, whole.rehearsal->total_steps());
  }
}

TEST(Session, TellsEachEpochAfterItsSteps) {
  const Whole whole(training());

  const auto& epochs = whole.context.epochs();
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    EXPECT_EQ(epochs[i].epoch, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(epochs[i].epochs, whole.rehearsal->epochs());
    EXPECT_EQ(epochs[i].step, epochs[i].epoch * whole.rehearsal->steps_per_epoch());
    EXPECT_EQ(whole.context.steps_before_epochs()[i], static_cast<std::size_t>(epochs[i].step));
    EXPECT_EQ(epochs[i].learning_rate, whole.rehearsal->rate_of(epochs[i].step));
    EXPECT_GE(epochs[i].seconds, 0);
  }
}

TEST(Session, TheTrainingLossIsTheMeanOverTheRowsOfTheEpoch) {
  Whole whole(training({.learning_rate = 0, .dropout = 0}));

  for (const EpochSummary& epoch : whole.context.epochs()) {
    EXPECT_NEAR(epoch.train_loss,
                whole.rehearsal->loss_on(whole.rehearsal->training(), epoch.epoch - 1), 1e-12);
  }
}

TEST(Session, EvaluatesEveryValidationRowOnceAnEpoch) {
  Whole whole(training({.learning_rate = 0}));

  for (const EpochSummary& epoch : whole.context.epochs()) {
    ASSERT_TRUE(epoch.val_loss.has_value());
    EXPECT_NEAR(*epoch.val_loss, whole.rehearsal->loss_on(whole.rehearsal->validation()), 1e-12);
    ASSERT_EQ(epoch.metrics.size(), 1U);
    EXPECT_EQ(epoch.metrics[0].name, "mae");
  }
  EXPECT_EQ(whole.rehearsal->metric().rows(), row_numbers(0, Rehearsal::kValidationRows));
}

TEST(Session, TrainsWithoutValidationRows) {
  const Whole whole(training({.has_validation = false}));

  for (const EpochSummary& epoch : whole.context.epochs()) {
    EXPECT_FALSE(epoch.val_loss.has_value());
    EXPECT_TRUE(epoch.metrics.empty());
    EXPECT_GT(epoch.train_loss, 0);
  }
  EXPECT_EQ(whole.result.final_loss, whole.context.epochs().back().train_loss);
}

TEST(Session, TheResultSaysWhatTheHistorySays) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole whole(training(rehearsed));
    const auto loss_of = [](const EpochSummary& epoch) {
      return epoch.val_loss.value_or(epoch.train_loss);
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

TEST(Session, ConditionsMayNameWhatTheGradientStrategyLogs) {
  struct ExpectsRows final : TrainingCallback {
    void do_begin(TrainingControl& control) override {
      control.expect_logged("rows", Config(nlohmann::json{{"monitor", "rows"}}), "monitor");
    }
  };
  Rehearsal::Callbacks callbacks;
  callbacks.push_back(std::make_unique<ExpectsRows>());
  Rehearsal rehearsal({}, std::move(callbacks));
  const CountsRows strategy;
  rehearsal.setup().gradients = &strategy;
  RecordingContext context;

  rehearsal.train(context);

  for (const EpochSummary& epoch : context.epochs()) {
    const auto rows = std::find_if(epoch.logged.begin(), epoch.logged.end(),
                                   [](const MetricValue& value) { return value.name == "rows"; });
    ASSERT_NE(rows, epoch.logged.end());
    // Each row counts once: as many rows as its batch has.
    double sum = 0;
    for (std::int64_t left = Rehearsal::kTrainingRows; left > 0; left -= Rehearsal::kBatch) {
      const auto batch = static_cast<double>(std::min<std::int64_t>(left, Rehearsal::kBatch));
      sum += batch * batch;
    }
    EXPECT_NEAR(rows->value, sum / Rehearsal::kTrainingRows, 1e-12);
  }
}

// As on a device, whose numbers the host does not read in a step.
TEST(Session, TrainsByTensorsAsByTheHostsNumbers) {
  for (Rehearsed rehearsed : situations()) {
    const Whole by_host(training(rehearsed));
    rehearsed.path = ParameterView::Path::kTensors;
    const Whole by_tensors(training(rehearsed));

    const double bound = rehearsed.sixteen_bits ? 1e-2 : 1e-12;
    EXPECT_NEAR(by_tensors.result.final_loss, by_host.result.final_loss, bound);
    ASSERT_EQ(by_tensors.context.epochs().size(), by_host.context.epochs().size());
    for (std::size_t i = 0; i < by_host.context.epochs().size(); ++i) {
      EXPECT_NEAR(by_tensors.context.epochs()[i].train_loss, by_host.context.epochs()[i].train_loss,
                  bound);
    }
    expect_stops_after_every_step_change_nothing([&] { return training(rehearsed); });
  }
}

TEST(Session, ByTensorsADivergedTrainingNamesTheSameStep) {
  const auto error_of = [](ParameterView::Path path) {
    Rehearsal rehearsal({.path = path});
    RecordingContext context;
    rehearsal.training().spoil(1, 1);
    return training_error(rehearsal, context);
  };

  EXPECT_EQ(error_of(ParameterView::Path::kTensors), error_of(ParameterView::Path::kFastest));
}

TEST(Session, DrawsFromTheStreamsOfItsContext) {
  const Whole one(training());
  Rehearsal other;
  RecordingContext context{RandomStreams(99)};

  other.train(context);

  EXPECT_FALSE(same_bits(other.weights(), one.rehearsal->weights()));
}

TEST(Session, ALossThatIsNotANumberNamesEpochAndStep) {
  Rehearsal rehearsal;
  RecordingContext context;
  rehearsal.training().spoil(1, 1);

  const std::string error = training_error(rehearsal, context);

  const std::int64_t step = rehearsal.steps_per_epoch() + 2;
  EXPECT_NE(error.find("epoch 2"), std::string::npos) << error;
  EXPECT_NE(error.find("step " + std::to_string(step)), std::string::npos) << error;
  EXPECT_EQ(static_cast<std::int64_t>(context.steps().size()), step - 1);
}

TEST(Session, NoCheckpointHoldsWeightsThatAreNotNumbers) {
  const auto expect_sound = [](Rehearsal& rehearsal, std::int64_t stop) {
    RecordingContext context;
    context.stop_after_step(stop);
    training_error(rehearsal, context);
    for (const RecordingContext::Saved& saved : context.checkpoints())
      EXPECT_TRUE(is_finite(saved.state)) << "step " << saved.position.steps_done;
  };
  // With a stop, which is a reason to save, right after the first step, and without.
  for (const std::int64_t stop : {1, 1000000}) {
    Rehearsal spoiled;
    spoiled.training().spoil(0, 0);
    expect_sound(spoiled, stop);
    Rehearsal steep({.steep_loss = true});
    expect_sound(steep, stop);
    // The loss and its gradient are numbers; the weights after the update are not.
    Rehearsal hasty({.learning_rate = std::numeric_limits<double>::infinity()});
    expect_sound(hasty, stop);
  }
}

TEST(Session, GradientsThatAreNotNumbersUpdateNothing) {
  Rehearsal rehearsal({.steep_loss = true});
  RecordingContext context;

  training_error(rehearsal, context);

  EXPECT_TRUE(is_finite(rehearsal.weights()));
}

TEST(Session, ValidatingChangesNothing) {
  Rehearsal rehearsal;
  RecordingContext context;
  const StateDict before = rehearsal.weights();
  for (const bool training : {true, false}) {
    rehearsal.model().train(training);
    rehearsal.model().hidden().train(false);  // a layer that somebody froze

    rehearsal.validate();

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

TEST(Session, ValidatingEvaluatesEveryRowOnce) {
  Rehearsal rehearsal;
  RecordingContext context;
  const double expected = rehearsal.loss_on(rehearsal.validation());
  for (const char* time : {"first", "second"}) {
    SCOPED_TRACE(time);

    const engine::ValidationResult result = rehearsal.validate();

    EXPECT_NEAR(result.loss, expected, 1e-12);
    EXPECT_EQ(result.sample_count, Rehearsal::kValidationRows);
    EXPECT_EQ(rehearsal.metric().rows(), row_numbers(0, Rehearsal::kValidationRows));
    ASSERT_EQ(result.metrics.values.size(), 1U);
    EXPECT_EQ(result.metrics.values[0].value, rehearsal.metric().compute().values[0].value);
  }
}

TEST(Session, MetricsAreInTheDatasUnits) {
  Whole whole(training({.epochs = 20}));

  const MetricValue error = whole.rehearsal->validate().metrics.values.at(0);

  // In the model's units the root mean square is sqrt(2 * loss), in the data's a tenth of it. A
  // mean of absolute values is no larger, and weights between 0.5 and 1.5 change it by less than
  // sqrt(3).
  EXPECT_LT(error.value, std::sqrt(3.0) / 10 * std::sqrt(2 * whole.result.final_loss));
}

TEST(Session, CheckpointsSayWhereTheTrainingIs) {
  for (const Rehearsed& rehearsed : situations()) {
    const Whole whole(training(rehearsed));
    const std::int64_t per_epoch = whole.rehearsal->steps_per_epoch();
    const auto& checkpoints = whole.context.checkpoints();

    ASSERT_FALSE(checkpoints.empty());
    for (const RecordingContext::Saved& saved : checkpoints) {
      const engine::TrainingPosition& position = saved.position;
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

TEST(Session, AStopAskedForBeforehandCostsNoMoreThanAStep) {
  Rehearsal rehearsal;
  RecordingContext context;
  context.stop_now();

  EXPECT_THROW(rehearsal.train(context), Interrupted);

  EXPECT_LE(context.steps().size(), 1U);
  EXPECT_EQ(context.checkpoints().size(), context.steps().size());
}

// A continued run's refit may be given fewer epochs than it has been trained.
TEST(Session, WithMoreEpochsThanItIsGivenItEndsWithoutAStep) {
  const Whole longer(training({.epochs = 5}));
  const auto& saved = longer.context.checkpoints();
  const auto third = std::find_if(saved.begin(), saved.end(), [](const auto& checkpoint) {
    return checkpoint.position.epochs_done == 3 && checkpoint.position.at_epoch_end;
  });
  ASSERT_NE(third, saved.end());
  RecordingContext context(longer.context, *third);
  const std::size_t steps = context.steps().size();

  const engine::TrainingResult result = training({.epochs = 2})->train(context);

  EXPECT_EQ(context.steps().size(), steps);
  EXPECT_EQ(result.total_epochs, 3);
}

TEST(Session, RefusesAnEmptyState) {
  Rehearsal rehearsal;
  RecordingContext context;
  context.resume_from(StateDict());

  EXPECT_THROW(rehearsal.train(context), StorageError);
}

}  // namespace
}  // namespace treadle::testing
