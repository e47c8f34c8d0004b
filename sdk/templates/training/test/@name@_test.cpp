#include <treadle/sdk.h>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/model/recording_context.h>
#include <treadle/testing/support/rehearsal.h>
#include <treadle/testing/training/training_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::TrainingWorkflow> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::TrainingWorkflow>("@name@", std::move(parameters));
}

// What every training loop keeps; half of it is about stopping and going on.
INSTANTIATE_TEST_SUITE_P(@Name@, TrainingContract,
                         ::testing::Values(TrainingCase{"Usual", [] { return make(); }},
                                           TrainingCase{"Slower",
                                                        [] {
                                                          return make({{"slow_epochs", 3},
                                                                       {"slow_factor", 0.5}});
                                                        }}),
                         CaseName());

// By hand: the rehearsal's schedule gives rate_of(step), of three steps an epoch.
TEST(@Name@, TheFirstEpochsHaveTheLowerRate) {
  Rehearsal rehearsal(make({{"slow_epochs", 2}, {"slow_factor", 0.25}}), {.epochs = 4});
  RecordingContext context;

  rehearsal.train(context);

  const auto& epochs = context.epochs();
  ASSERT_EQ(epochs.size(), 4U);
  EXPECT_DOUBLE_EQ(epochs[0].learning_rate, 0.25 * rehearsal.rate_of(3));
  EXPECT_DOUBLE_EQ(epochs[1].learning_rate, 0.25 * rehearsal.rate_of(6));
  EXPECT_DOUBLE_EQ(epochs[2].learning_rate, rehearsal.rate_of(9));
  EXPECT_DOUBLE_EQ(epochs[3].learning_rate, rehearsal.rate_of(12));
}

}  // namespace
