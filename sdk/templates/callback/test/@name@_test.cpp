#include <treadle/sdk.h>

#include <treadle/testing/training/callback_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/model/recording_context.h>
#include <treadle/testing/support/rehearsal.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::TrainingCallback> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::TrainingCallback>("@name@", std::move(parameters));
}

// What every callback keeps; most of it is about stopping and going on.
INSTANTIATE_TEST_SUITE_P(@Name@, CallbackContract,
                         ::testing::Values(CallbackCase{"Usual", [] { return make(); }},
                                           CallbackCase{"Impatient",
                                                        [] {
                                                          return make({{"epochs_in_a_row", 1}});
                                                        }}),
                         CaseName());

// A rate of -0.05 climbs: the loss grows from the second epoch on.
TEST(@Name@, EndsATrainingWhoseLossGrows) {
  Rehearsal::Callbacks callbacks;
  callbacks.push_back(make({{"epochs_in_a_row", 2}}));
  Rehearsal rehearsal({.epochs = 10, .learning_rate = -0.05}, std::move(callbacks));
  RecordingContext context;

  const auto result = rehearsal.train(context);

  EXPECT_EQ(result.total_epochs, 3);
  EXPECT_EQ(result.stop_reason, "the loss has grown for 2 epochs");
}

}  // namespace
