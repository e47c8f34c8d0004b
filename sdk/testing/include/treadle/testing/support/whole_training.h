#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/rehearsal.h>

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
void expect_same_end(RecordingContext& context, const MakeRehearsal& make, const Whole& whole);

/// Stops the training after every step, saves, and goes on in new objects.
void expect_stops_after_every_step_change_nothing(const MakeRehearsal& make);

/// Goes on from every checkpoint that the whole training saved, as after a crash.
void expect_every_checkpoint_leads_to_the_same_end(const MakeRehearsal& make);

/// Trains a rehearsal that fails; the error's text.
std::string training_error(Rehearsal& rehearsal, RecordingContext& context);

/// With and without validation rows, and with such that another epoch than the last one is best;
/// with a model that carries something from batch to batch, and with one of 16 bits.
std::vector<Rehearsed> situations();

}  // namespace treadle::testing
