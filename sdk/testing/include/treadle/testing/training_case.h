#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/batches.h>
#include <treadle/testing/case_name.h>
#include <treadle/testing/rehearsal.h>

namespace treadle::testing {

struct TrainingCase {
  std::string name;
  /// A new object each time, of the same configuration: 3 to 20 epochs, at most 16 training rows in
  /// a batch.
  std::function<std::unique_ptr<TrainingWorkflow>()> make;
  /// Its training may be over before the planned epochs are.
  bool may_stop_early = false;
};

class TrainingContract : public ::testing::TestWithParam<TrainingCase> {
 protected:
  /// One training from its beginning to its end.
  struct Whole {
    explicit Whole(const Rehearsed& rehearsed = {}) : rehearsal(GetParam().make(), rehearsed) {
      result = rehearsal.train(context);
    }
    Rehearsal rehearsal;
    RecordingContext context;
    TrainingResult result;
  };

  /// Trains on, in an object that knows nothing of the training before.
  static void expect_same_end(RecordingContext& context, const Rehearsed& rehearsed,
                              const Whole& whole) {
    Rehearsal rehearsal(GetParam().make(), rehearsed);
    expect_same_result(rehearsal.train(context), whole.result);
    expect_same_history(context.epochs(), whole.context.epochs());
    EXPECT_TRUE(same_bits(rehearsal.weights(), whole.rehearsal.weights()));
  }

  /// Trains a rehearsal that fails; the error's text.
  static std::string training_error(Rehearsal& rehearsal, RecordingContext& context) {
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
  static std::vector<Rehearsed> situations() {
    return {{},
            {.has_validation = false},
            {.contrary_validation = true},
            {.fixed_epochs = 3},
            {.remembers = true},
            {.sixteen_bits = true}};
  }
};

}  // namespace treadle::testing
