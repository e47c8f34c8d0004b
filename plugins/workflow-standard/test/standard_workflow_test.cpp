#include "standard_workflow.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <treadle/base/problem.h>
#include <treadle/testing/plugin_under_test.h>
#include <treadle/testing/training_contract.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::unique_ptr<TrainingWorkflow> make(const Json& parameters) {
  Json complete = {{"epochs", 5}, {"batch_size", 16}};
  complete.update(parameters);
  return plugin().make<TrainingWorkflow>("standard", std::move(complete));
}

TrainingCase training_case(std::string name, const Json& parameters, bool may_stop_early = false) {
  return {std::move(name), [parameters] { return make(parameters); }, may_stop_early};
}

INSTANTIATE_TEST_SUITE_P(
    Standard, TrainingContract,
    ::testing::Values(
        training_case("Plain", Json::object()),
        training_case("InOrderWithoutTheRest", {{"shuffle", false}, {"drop_last", true}}),
        training_case("SavingEachStep", {{"checkpoint", {{"every", "1st"}}}}),
        training_case("SavingEachEpoch", {{"checkpoint", {{"every", "1ep"}, {"keep", 1}}}}),
        training_case("SmallEvaluationBatches", {{"evaluation_batch_size", 4}}),
        training_case("ClippingTheNorm", {{"clip", {{"norm", 5.0}}}}),
        training_case("ClippingValues", {{"clip", {{"value", 1.0}, {"norm", 2.0}}}}),
        training_case("KeepingTheBest",
                      {{"keep_best", "loss"}, {"checkpoint", {{"every", "1st"}}}}),
        training_case("KeepingTheBestByAMetric", {{"keep_best", "mae"}}),
        // Nothing is better by 100: it stops once the patience is at an end.
        training_case(
            "StoppingEarly",
            {{"epochs", 6}, {"early_stopping", {{"patience", "3ep"}, {"min_delta", 100.0}}}}, true),
        training_case("StoppingEarlyByAMetric",
                      {{"epochs", 8},
                       {"checkpoint", {{"every", "1st"}}},
                       {"early_stopping",
                        {{"metric", "mae"}, {"patience", "2ep"}, {"alpha", 0.7}}}},
                      true)),
    CaseName());

/// A metric that has no value in its first epochs, as one has that no row yet gives a meaning to.
class LateMetric final : public MetricComputer {
  void do_start(const TargetSpec&) override {}
  void do_reset() override { ++epoch_; }
  void do_update(const Predictions&, const Batch&) override {}
  void do_merge(const MetricComputer&) override {}
  MetricResult do_compute() const override {
    const double value = epoch_ < 3 ? std::nan("") : epoch_;
    return {{{"late", value, Direction::kLowerIsBetter}}, {}};
  }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}

  int epoch_ = -1;  // the workflow looks at it once before the first epoch
};

TEST(StandardWorkflow, AnyNumberIsBetterThanNone) {
  Rehearsal rehearsal(make({{"keep_best", "late"}}));
  LateMetric late;
  rehearsal.task().metrics = {&late};
  RecordingContext context;

  EXPECT_EQ(rehearsal.train(context).best_epoch, 3);
}

TEST(StandardWorkflow, SaysWhatItCouldHaveWatched) {
  Rehearsal rehearsal(make({{"keep_best", "accuracy"}}));
  RecordingContext context;

  try {
    rehearsal.train(context);
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_STREQ(error.what(),
                 "/keep_best: there is no \"accuracy\" among what the validation gives: loss, mae; add it to "
                 "\"metrics\", or name one of these");
  }
  EXPECT_TRUE(context.epochs().empty());  // it did not take an epoch to find out
}

// Its loss is a number: the weights are not, which saving notices.
TEST(StandardWorkflow, NamesTheStepWhoseUpdateWentWrong) {
  Rehearsal rehearsal(make({{"checkpoint", {{"every", "1st"}}}}),
                      {.learning_rate = std::numeric_limits<double>::infinity()});
  RecordingContext context;

  try {
    rehearsal.train(context);
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_STREQ(
        error.what(),
        "the loss or its gradient became NaN or infinite in epoch 1, step 1 (fold-1); there "
        "is no checkpoint yet; try a lower optimizer.learning_rate, or bound the gradients "
        "with training.clip.norm");
  }
}

TEST(StandardWorkflow, SavesAsOftenAsAsked) {
  const auto saved_at = [](const char* every) {
    Rehearsal rehearsal(make({{"checkpoint", {{"every", every}, {"keep", 7}}}}));
    RecordingContext context;
    rehearsal.train(context);
    std::vector<std::int64_t> steps;
    for (const RecordingContext::Saved& saved : context.checkpoints()) {
      EXPECT_EQ(saved.keep, 7);
      steps.push_back(saved.position.steps_done);
    }
    return steps;
  };

  // 5 epochs of 3 steps; the end is always saved.
  EXPECT_THAT(saved_at("4st"), ElementsAre(4, 8, 12, 15));
  EXPECT_THAT(saved_at("2ep"), ElementsAre(6, 12, 15));
  EXPECT_THAT(saved_at("50%"), ElementsAre(8, 15));
  EXPECT_THAT(saved_at("2h"), ElementsAre(15));
}

TEST(StandardWorkflow, StopsEarlyWithTheBestWeights) {
  Rehearsal rehearsal(make({{"epochs", 20}, {"early_stopping", {{"patience", "2ep"}}}}),
                      {.contrary_validation = true});
  RecordingContext context;

  const TrainingResult result = rehearsal.train(context);

  EXPECT_EQ(result.total_epochs, 3);
  EXPECT_EQ(result.best_epoch, 1);
  EXPECT_EQ(result.stop_reason, "no improvement for 2 epochs (loss)");
  EXPECT_EQ(rehearsal.validate(context).loss, context.epochs().front().validation_loss);
}

TEST(StandardWorkflow, WithoutValidationRowsNothingStopsEarly) {
  Rehearsal rehearsal(make({{"early_stopping", {{"patience", "0ep"}, {"min_delta", 100.0}}}}),
                      {.has_validation = false});
  RecordingContext context;

  const TrainingResult result = rehearsal.train(context);

  EXPECT_EQ(result.total_epochs, 5);
  EXPECT_FALSE(result.selects_best);
}

TEST(StandardWorkflow, PatienceIsNotWallTime) {
  EXPECT_THROW(make({{"early_stopping", {{"patience", "10s"}}}}), DocumentError);
}

}  // namespace
}  // namespace treadle::testing
