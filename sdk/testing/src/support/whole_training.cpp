#include <treadle/testing/support/whole_training.h>

#include <gtest/gtest.h>
#include <treadle/base/error.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/rehearsal.h>
#include <functional>
#include <memory>
#include <string>

namespace treadle::testing {

void expect_same_end(RecordingContext& context, const MakeRehearsal& make, const Whole& whole) {
  const std::unique_ptr<Rehearsal> rehearsal = make();
  expect_same_result(rehearsal->train(context), whole.result);
  expect_same_history(context.epochs(), whole.context.epochs());
  EXPECT_TRUE(same_bits(rehearsal->weights(), whole.rehearsal->weights()));
}

void expect_stops_after_every_step_change_nothing(const MakeRehearsal& make) {
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

void expect_every_checkpoint_leads_to_the_same_end(const MakeRehearsal& make) {
  const Whole whole(make());
  ASSERT_FALSE(whole.context.checkpoints().empty());
  for (const RecordingContext::Saved& saved : whole.context.checkpoints()) {
    SCOPED_TRACE("continued from step " + std::to_string(saved.position.steps_done));
    RecordingContext context(whole.context, saved);
    expect_same_end(context, make, whole);
  }
}

std::string training_error(Rehearsal& rehearsal, RecordingContext& context) {
  try {
    rehearsal.train(context);
  } catch (const TrainingError& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a TrainingError";
  return "";
}

std::vector<Rehearsed> situations() {
  return {{},
          {.has_validation = false},
          {.contrary_validation = true},
          {.epochs = 3, .is_refit = true, .has_validation = false},
          {.keeps_state = true},
          {.sixteen_bits = true}};
}

}  // namespace treadle::testing
