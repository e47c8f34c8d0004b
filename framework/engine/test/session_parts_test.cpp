// The parts of a session, each by itself.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/rehearsal.h>

#include "session/checkpoints.h"
#include "session/epoch_evaluation.h"
#include "session/loop_rows.h"
#include "session/progress.h"
#include "session/rates.h"
#include "session/weight_choice.h"

namespace treadle::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RecordingContext;
using testing::Rehearsal;

TEST(Progress, EndsWithItsEpochs) {
  Progress progress({.epochs = 2, .steps = {}, .batches_per_epoch = 3});
  EXPECT_EQ(progress.total_steps(), 6);
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_FALSE(progress.is_finished());
    for (int batch = 0; batch < 3; ++batch) {
      EXPECT_FALSE(progress.is_last_of_epoch());
      progress.end_step();
    }
    EXPECT_TRUE(progress.is_last_of_epoch());
    progress.end_epoch();
  }
  EXPECT_TRUE(progress.is_finished());
  EXPECT_EQ(progress.steps_done(), 6);
}

TEST(Progress, EndsWithTheEpochInWhichItsStepsAreDone) {
  Progress progress({.epochs = 2, .steps = 4, .batches_per_epoch = 3});
  EXPECT_EQ(progress.total_steps(), 4);
  for (int step = 0; step < 3; ++step)
    progress.end_step();
  progress.end_epoch();
  progress.end_step();
  EXPECT_TRUE(progress.is_last_of_epoch());
  EXPECT_TRUE(progress.is_ending());
  EXPECT_FALSE(progress.is_finished()) << "the epoch is not evaluated";
  progress.end_epoch();
  EXPECT_TRUE(progress.is_finished());
}

TEST(Progress, TheFirstReasonToStopCounts) {
  Progress progress({.epochs = 9, .steps = {}, .batches_per_epoch = 3});
  progress.end_step();
  EXPECT_TRUE(progress.stop("one"));
  EXPECT_FALSE(progress.stop("another"));
  EXPECT_EQ(progress.stop_reason(), "one");
  EXPECT_TRUE(progress.is_last_of_epoch());
}

TEST(Progress, IsWhereItWasAfterAResume) {
  Progress progress({.epochs = 9, .steps = {}, .batches_per_epoch = 3});
  for (int step = 0; step < 3; ++step)
    progress.end_step();
  progress.end_epoch();
  progress.end_step();
  StateDict state;
  progress.save_in(state);
  Progress resumed({.epochs = 9, .steps = {}, .batches_per_epoch = 3});
  resumed.load_from(state);
  EXPECT_EQ(resumed.epochs_done(), 1);
  EXPECT_EQ(resumed.steps_done(), 4);
  EXPECT_EQ(resumed.batches_done(), 1);
  EXPECT_EQ(resumed.epoch_of_last_step(), 2);
}

TEST(Rates, AreTheSchedulesTimesTheFactorsOfCallbacks) {
  Rehearsal rehearsal({.epochs = 2});
  const Progress progress({.epochs = 2, .steps = {}, .batches_per_epoch = 3});
  Rates rates(rehearsal.setup(), progress);
  EXPECT_EQ(rates.scheduled(1), rehearsal.rate_of(2));
  rates.multiply(0.5);
  rates.multiply(0.5);
  EXPECT_EQ(rates.scheduled(1), 0.25 * rehearsal.rate_of(2));
  EXPECT_TRUE(rates.of_groups(1, 0.1).empty()) << "no group has a schedule";
}

TEST(LoopRows, APartIsReadOnWhereItWasSaved) {
  Rehearsal rehearsal;
  testing::Tenfold transform;
  testing::TableSource rows(testing::noisy_line(20, 4, 0.1), transform,
                            {.batch_size = 8, .shuffle = true});
  SessionSetup setup = rehearsal.setup();
  setup.rows = {{"part", &rows, nullptr}};
  const auto taken = [&](LoopRows& from, int count) {
    std::vector<at::Tensor> numbers;
    for (int i = 0; i < count; ++i)
      numbers.push_back(from.next("part").rows);
    return numbers;
  };
  LoopRows whole(setup, c10::kCPU);
  const std::vector<at::Tensor> expected = taken(whole, 8);  // more than two passes
  for (int before = 0; before < 8; ++before) {
    LoopRows first(setup, c10::kCPU);
    taken(first, before);
    StateDict state;
    first.save_in(state);
    LoopRows resumed(setup, c10::kCPU);
    resumed.load_from(state);
    const std::vector<at::Tensor> rest = taken(resumed, 8 - before);
    for (std::size_t i = 0; i < rest.size(); ++i)
      EXPECT_TRUE(at::equal(rest[i], expected[static_cast<std::size_t>(before) + i])) << before;
  }
}

TEST(EpochEvaluation, OfBatchesIsThatOfTheirRows) {
  Rehearsal rehearsal({.has_validation = false});
  const RecordingContext context;
  EpochEvaluation evaluation(rehearsal.setup(), context);
  EpochSummary nothing;
  evaluation.take(nothing);
  EXPECT_FALSE(nothing.val_loss);

  const auto stream = rehearsal.training().epoch(0);
  for (Batch batch; stream->next(batch);)
    evaluation.add(batch);
  EpochSummary summary;
  evaluation.take(summary);

  EXPECT_NEAR(*summary.val_loss, rehearsal.loss_on(rehearsal.training()), 1e-12);
  EXPECT_FALSE(summary.metrics.empty());
}

/// A training without its loop.
struct Parts {
  Rehearsal rehearsal{{.epochs = 3}};
  RecordingContext context;
  LoopNeeds needs;
  Progress progress{{.epochs = 3, .steps = {}, .batches_per_epoch = 3}};
  TrainingStep step{rehearsal.model(), *rehearsal.setup().objective, *rehearsal.setup().optimizer};
  SessionParts parts{rehearsal.setup(), context, needs, step, progress};
};

EpochSummary epoch_with_loss(std::int64_t epoch, double loss) {
  EpochSummary summary;
  summary.epoch = epoch;
  summary.val_loss = loss;
  return summary;
}

TEST(WeightChoice, TheBestEpochIsTheFirstOfTheLeastLoss) {
  Parts parts;
  WeightChoice weights(parts.step, parts.rehearsal.setup(), parts.context);
  std::vector<bool> best;
  const std::vector<double> losses{3, 2, 2, std::nan(""), 1};
  for (std::size_t i = 0; i < losses.size(); ++i)
    best.push_back(weights.is_best(epoch_with_loss(static_cast<std::int64_t>(i) + 1, losses[i])));
  EXPECT_THAT(best, ElementsAre(true, true, false, false, true));
  TrainingResult result;
  weights.describe(result);
  EXPECT_EQ(result.best_epoch, 5);
  EXPECT_EQ(result.best_loss, 1);
  EXPECT_FALSE(result.selects_best);
}

TEST(WeightChoice, EndsWithTheWeightsThatWereKept) {
  Parts parts;
  WeightChoice weights(parts.step, parts.rehearsal.setup(), parts.context);
  weights.end_with_kept("val_loss");
  const StateDict kept = parts.rehearsal.weights();
  weights.keep();
  EXPECT_TRUE(weights.is_best(epoch_with_loss(1, 9)));
  {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : parts.rehearsal.model().parameters())
      parameter.add_(1);
  }
  EXPECT_FALSE(weights.is_best(epoch_with_loss(2, 1))) << "kept weights decide, not the loss";
  weights.choose(2, false);
  EXPECT_TRUE(testing::same_bits(parts.rehearsal.weights(), kept));
  EXPECT_THROW(weights.end_with_kept("rmse"), DocumentError);
}

TEST(Checkpoints, AreSavedWhenTheyAreDueAndAtTheEnd) {
  Parts parts;
  parts.rehearsal.setup().checkpoint_every = {2, Duration::Unit::kSteps};
  const ScheduleSpan span{0.1, 9, 3};
  Checkpoints checkpoints(parts.parts, span, [] { return StateDict(); });
  std::vector<std::int64_t> steps;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int batch = 0; batch < 3; ++batch) {
      parts.progress.end_step();
      checkpoints.after_step();
    }
    parts.progress.end_epoch();
    checkpoints.after_epoch();
    checkpoints.save_finished_epoch();
  }
  for (const RecordingContext::Saved& saved : parts.context.checkpoints())
    steps.push_back(saved.position.steps_done);
  EXPECT_THAT(steps, ElementsAre(2, 4, 6, 8, 9));
  EXPECT_TRUE(parts.context.checkpoints().back().position.finished);
}

TEST(Checkpoints, AStopIsSavedUnlessALoopIsWithinAStep) {
  Parts parts;
  const ScheduleSpan span{0.1, 9, 3};
  Checkpoints checkpoints(parts.parts, span, [] { return StateDict(); });
  parts.progress.end_step();
  EXPECT_THROW(checkpoints.interrupt(true), Interrupted);
  EXPECT_TRUE(parts.context.checkpoints().empty());
  EXPECT_THROW(checkpoints.save_finished_epoch(), Interrupted) << "once and for all";

  Checkpoints others(parts.parts, span, [] { return StateDict(); });
  EXPECT_THROW(others.interrupt(false), Interrupted);
  EXPECT_EQ(parts.context.checkpoints().size(), 1U);
}

}  // namespace
}  // namespace treadle::engine
