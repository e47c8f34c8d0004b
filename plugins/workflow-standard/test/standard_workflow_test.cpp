#include "standard_workflow.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/problem.h>
#include <treadle/core/task_random.h>
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
        training_case("AveragingExponentially",
                      {{"ema", {{"decay", 0.8}}}, {"checkpoint", {{"every", "1st"}}}}),
        // Everything stalls by 100: it freezes, unfreezes and stops.
        training_case("FollowingTrends",
                      {{"epochs", 6},
                       {"checkpoint", {{"every", "1st"}}},
                       {"freeze", {"hidden.*"}},
                       {"unfreeze",
                        {{{"when", {{"trend", "loss"}, {"stalled", {2, 100}}}},
                          {"parameters", {"hidden.weight"}}}}},
                       {"stop", {{"when", {{"trend", "hidden"}, {"stalled", {3, 100}}}}}}},
                      true),
        training_case("AveragingFromTheMiddle", {{"swa", {{"start", "40%"}, {"every", "2st"}}},
                                                 {"keep_best", "mae"},
                                                 {"checkpoint", {{"every", "1st"}}}}),
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
  void do_update(const Prediction&, const TargetBatch&) override {}
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
  rehearsal.task().metrics = {{&late, 0, number_target("price")}};
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
                 "/keep_best: there is no \"accuracy\" among what the validation gives: loss, mae; "
                 "add it to "
                 "\"metrics\", or name one of these");
  }
  EXPECT_TRUE(context.epochs().empty());  // it did not take an epoch to find out
}

TEST(StandardWorkflow, SaysWhoseTrendItCouldHaveFollowed) {
  Rehearsal rehearsal(make({{"stop", {{"when", {{"trend", "mea"}, {"improving", 2}}}}}}),
                      {.has_validation = false});
  Rehearsal judged(make({{"stop", {{"when", {{"trend", "mea"}, {"improving", 2}}}}}}));
  const auto message = [](Rehearsal& its) -> std::string {
    RecordingContext context;
    try {
      its.train(context);
    } catch (const DocumentError& error) {
      EXPECT_TRUE(context.epochs().empty());
      return error.what();
    }
    return "";
  };

  EXPECT_EQ(
      message(rehearsal),
      "/stop/when/trend: there is no \"mea\" in the history of this training, which has loss, "
      "hidden");
  EXPECT_EQ(
      message(judged),
      "/stop/when/trend: there is no \"mea\" in the history of this training, which has loss, "
      "validation_loss, mae, hidden; did you mean \"mae\"?");
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

/// The weights after each step, by the checkpoints of a training that saves each step; none is
/// for those it began with.
std::vector<StateDict> saved_weights(const RecordingContext& context) {
  std::vector<StateDict> weights;
  for (const RecordingContext::Saved& saved : context.checkpoints())
    weights.push_back(saved.state.part("model"));
  return weights;
}

double worst_difference(const StateDict& a, const StateDict& b) {
  double worst = 0;
  for (const auto& [name, tensor] : a.tensors())
    worst = std::max(worst, (tensor - b.tensor(name)).abs().max().item<double>());
  return worst;
}

TEST(StandardWorkflow, EndsWithAndJudgesTheMovingAverage) {
  Rehearsal rehearsal(
      make({{"epochs", 2}, {"ema", {{"decay", 0.75}}}, {"checkpoint", {{"every", "1st"}}}}));
  StateDict expected = rehearsal.weights();
  RecordingContext context;

  rehearsal.train(context);

  for (const StateDict& weights : saved_weights(context)) {
    StateDict next;
    for (const auto& [name, average] : expected.tensors()) {
      const at::Tensor& now = weights.tensor(name);
      next.put(name, now.is_floating_point() ? average * 0.75 + now * 0.25 : now);
    }
    expected = next;
  }
  EXPECT_EQ(context.checkpoints().size(), 6U);
  EXPECT_LT(worst_difference(rehearsal.weights(), expected), 1e-14);
  EXPECT_GT(worst_difference(rehearsal.weights(), saved_weights(context).back()), 1e-4);
  EXPECT_EQ(rehearsal.validate(context).loss, context.epochs().back().validation_loss);
}

TEST(StandardWorkflow, EndsWithTheMeanOfTheLastEpochs) {
  Rehearsal rehearsal(make({{"swa", {{"start", "60%"}}}, {"checkpoint", {{"every", "1ep"}}}}));
  RecordingContext context;

  rehearsal.train(context);

  // After the epochs 3, 4 and 5 of 5.
  const std::vector<StateDict> weights = saved_weights(context);
  ASSERT_EQ(weights.size(), 5U);
  StateDict expected;
  for (const auto& [name, last] : weights[4].tensors()) {
    expected.put(name, last.is_floating_point()
                           ? (weights[2].tensor(name) + weights[3].tensor(name) + last) / 3
                           : last);
  }
  EXPECT_LT(worst_difference(rehearsal.weights(), expected), 1e-14);
  EXPECT_GT(worst_difference(rehearsal.weights(), weights[4]), 1e-4);
}

/// Normalizes what its first layer gives.
class Normalizing final : public Model {
 public:
  Normalizing() {
    const TaskRandom random(4);
    hidden = register_module("hidden", torch::nn::Linear(2, 3));
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    output = register_module("output", torch::nn::Linear(3, 1));
    to(at::kDouble);
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = output->forward(norm->forward(hidden->forward(inputs[0])));
  }
  torch::nn::Linear hidden{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear output{nullptr};
};

TEST(StandardWorkflow, GathersTheStatisticsThatBelongToTheMean) {
  Rehearsal rehearsal(make({{"swa", {{"start", "40%"}}}}));
  Normalizing model;
  rehearsal.task().model = &model;
  RecordingContext context;

  rehearsal.train(context);

  // The mean over the last epoch's batches, each counting the same, of what the averaged layer
  // gives.
  const at::NoGradGuard no_gradients;
  at::Tensor sum = at::zeros({3}, at::kDouble);
  const auto stream = rehearsal.training().epoch(4);
  for (Batch batch; stream->next(batch);)
    sum += model.hidden->forward(batch.inputs[0]).mean(0);
  const at::Tensor expected = sum / static_cast<double>(rehearsal.steps_per_epoch());
  EXPECT_LT((model.norm->running_mean - expected).abs().max().item<double>(), 1e-13);
  EXPECT_EQ(rehearsal.validate(context).loss, context.epochs().back().validation_loss);
}

TEST(StandardWorkflow, HasOneAverage) {
  try {
    make({{"ema", Json::object()}, {"swa", Json::object()}});
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_STREQ(
        error.what(),
        "/swa: a training has one average of its weights, and \"ema\" is given too; leave one of "
        "them out");
  }
}

// A stop that comes after the last step of an epoch need not wait for the validation rows.
TEST(StandardWorkflow, StopsWhileItJudgesAndGoesOnThere) {
  for (const Json& parameters :
       {Json::object(), Json{{"ema", {{"decay", 0.5}}}}, Json{{"keep_best", "loss"}}}) {
    Rehearsal through(make(parameters));
    RecordingContext all;
    through.train(all);

    Rehearsal stopped(make(parameters));
    RecordingContext before;
    before.stop_after_step(2 * stopped.steps_per_epoch());
    try {
      stopped.train(before);
      FAIL();
    } catch (const Interrupted& interrupted) {
      EXPECT_STREQ(interrupted.what(), "stopped after step 6 of epoch 2");
    }
    EXPECT_EQ(before.epochs().size(), 1U);  // the second was not judged
    Rehearsal resumed(make(parameters));
    RecordingContext after(before, before.checkpoints().back());
    resumed.train(after);

    EXPECT_TRUE(same_bits(resumed.weights(), through.weights()));
    ASSERT_EQ(after.epochs().size(), all.epochs().size());
    for (std::size_t i = 0; i < all.epochs().size(); ++i) {
      EXPECT_EQ(after.epochs()[i].training_loss, all.epochs()[i].training_loss) << i;
      EXPECT_EQ(after.epochs()[i].validation_loss, all.epochs()[i].validation_loss) << i;
      EXPECT_EQ(after.epochs()[i].learning_rate, all.epochs()[i].learning_rate) << i;
    }
  }
}

}  // namespace
}  // namespace treadle::testing
