#include <treadle/sdk.h>

#include <treadle/testing/plugin_under_test.h>
#include <treadle/testing/training_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::TrainingWorkflow> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::TrainingWorkflow>("@name@", std::move(parameters));
}

// What every training loop keeps; half of it is about stopping and going on.
INSTANTIATE_TEST_SUITE_P(@Name@, TrainingContract,
                         ::testing::Values(TrainingCase{
                             "Short",
                             [] {
                               return make({{"epochs", 4}, {"batch_size", 16}});
                             }}),
                         CaseName());

TEST(@Name@, SavesACheckpointAfterEachEpoch) {
  Rehearsal rehearsal(make({{"epochs", 3}, {"batch_size", 16}}));
  RecordingContext context;

  rehearsal.train(context);

  // By hand: 43 rows in batches of 16 are 3 steps.
  ASSERT_EQ(context.checkpoints().size(), 3U);
  EXPECT_EQ(context.checkpoints()[0].position.steps_done, 3);
  EXPECT_EQ(context.checkpoints()[2].position.steps_done, 9);
}

// By hand: the parameters p of a model that is trained with a rate of r for one step move by r
// times the gradient's mean over the rows, momentum being 0 before the first step.
TEST(@Name@, AStepFollowsTheMeanGradient) {
  const Rehearsed plain{.has_validation = false, .learning_rate = 0.01, .dropout = 0};
  Rehearsal rehearsal(make({{"epochs", 1}, {"batch_size", 43}}), plain);
  const at::Tensor before = rehearsal.weights().tensor("output.bias").clone();
  treadle::Batch batch;
  ASSERT_TRUE(rehearsal.training().epoch(0)->next(batch));
  treadle::Outputs outputs(1);
  treadle::ForwardContext forward;
  rehearsal.model().forward(batch.inputs, outputs, forward);
  // The loss is half the squared error: its slope by the output's bias is the error.
  const at::Tensor error = outputs[0].detach().sub(batch.targets[0]).view(-1);
  const double slope = error.mul(batch.weights).sum().div(batch.weights.sum()).item<double>();
  RecordingContext context;

  rehearsal.train(context);

  const double moved = rehearsal.weights().tensor("output.bias").sub(before).item<double>();
  EXPECT_NEAR(moved, -0.01 * slope, 1e-12);
}

TEST(@Name@, PlansWhatItsParametersSay) {
  const auto workflow = make({{"epochs", 7}, {"batch_size", 5}});

  EXPECT_EQ(workflow->planned_epochs(), 7);
  EXPECT_EQ(workflow->batch_plan().training_batch, 5);
}

}  // namespace
