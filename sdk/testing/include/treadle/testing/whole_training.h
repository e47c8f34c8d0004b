#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/batches.h>
#include <treadle/testing/rehearsal.h>

/// Whole trainings, and trainings that were stopped on their way, for the contract suites of what
/// takes part in them.
namespace treadle::testing {

/// Makes the same training, in objects that know nothing of one before.
using MakeRehearsal = std::function<std::unique_ptr<Rehearsal>()>;

/// One training from its beginning to its end.
struct Whole {
  explicit Whole(std::unique_ptr<Rehearsal> made) : rehearsal(std::move(made)) {
    result = rehearsal->train(context);
  }
  std::unique_ptr<Rehearsal> rehearsal;
  RecordingContext context;
  engine::TrainingResult result;
};

/// Trains on from what `context` resumes; the end must be that of `whole`, to the bit.
inline void expect_same_end(RecordingContext& context, const MakeRehearsal& make,
                            const Whole& whole) {
  const std::unique_ptr<Rehearsal> rehearsal = make();
  expect_same_result(rehearsal->train(context), whole.result);
  expect_same_history(context.epochs(), whole.context.epochs());
  EXPECT_TRUE(same_bits(rehearsal->weights(), whole.rehearsal->weights()));
}

/// Stops the training after every step, saves, and goes on in new objects.
inline void expect_stops_after_every_step_change_nothing(const MakeRehearsal& make) {
  const Whole whole(make());
  auto context = std::make_unique<RecordingContext>();
  for (std::size_t step = 1; step < whole.context.steps().size(); ++step) {
    const std::unique_ptr<Rehearsal> rehearsal = make();
    context->stop_after_step(static_cast<std::int64_t>(step));
    EXPECT_THROW(rehearsal->train(*context), Interrupted) << "after step " << step;
    ASSERT_FALSE(context->checkpoints().empty());
    context = std::make_unique<RecordingContext>(*context, context->checkpoints().back());
  }
  expect_same_end(*context, make, whole);
}

/// Goes on from every checkpoint that the whole training saved, as after a crash.
inline void expect_every_checkpoint_leads_to_the_same_end(const MakeRehearsal& make) {
  const Whole whole(make());
  ASSERT_FALSE(whole.context.checkpoints().empty());
  for (const RecordingContext::Saved& saved : whole.context.checkpoints()) {
    SCOPED_TRACE("continued from step " + std::to_string(saved.position.steps_done));
    RecordingContext context(whole.context, saved);
    expect_same_end(context, make, whole);
  }
}

/// Trains a rehearsal that fails; the error's text.
inline std::string training_error(Rehearsal& rehearsal, RecordingContext& context) {
  try {
    rehearsal.train(context);
  } catch (const TrainingError& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a TrainingError";
  return "";
}

/// With and without validation rows, and with such that another epoch than the last one is best;
/// with a model that carries something from batch to batch, and with one of 16 bits.
inline std::vector<Rehearsed> situations() {
  return {{},
          {.has_validation = false},
          {.contrary_validation = true},
          {.epochs = 3, .is_refit = true, .has_validation = false},
          {.keeps_state = true},
          {.sixteen_bits = true}};
}

}  // namespace treadle::testing
