#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/model/forward_context.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/model/recording_context.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/rehearsal.h>
#include <treadle/testing/support/whole_training.h>
#include <treadle/testing/training/callback_contract.h>
#include <treadle/testing/training/recording_control.h>

namespace treadle::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::unique_ptr<TrainingCallback> make(const std::string& name, const Json& parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<TrainingCallback>(name, parameters.is_null() ? Json::object() : parameters);
}

/// `use` of each and its parameters, as a document has them.
Rehearsal::Callbacks make_all(const Json& callbacks) {
  Rehearsal::Callbacks all;
  for (Json parameters : callbacks) {
    const std::string name = parameters.at("use");
    parameters.erase("use");
    all.push_back(make(name, parameters));
  }
  return all;
}

CallbackCase callback(std::string title, const std::string& name, const Json& parameters = {},
                      bool needs_validation = false) {
  return {std::move(title), [=] { return make(name, parameters); }, needs_validation};
}

const Json kStalledLoss{{"monitor", "train_loss"}, {"stalled", {2, 100}}};

INSTANTIATE_TEST_SUITE_P(
    Callbacks, CallbackContract,
    ::testing::Values(
        // Nothing is better by 100: it stops once the patience is at an end.
        callback("StoppingEarly", "early_stopping", {{"patience", "3ep"}, {"min_delta", 100.0}},
                 true),
        callback("StoppingEarlyByAMetric", "early_stopping",
                 {{"monitor", "mae"}, {"patience", "2ep"}, {"alpha", 0.7}}, true),
        callback("StoppingEarlyByTheTrainingLoss", "early_stopping",
                 {{"monitor", "train_loss"},
                  {"patience", "2ep"},
                  {"min_delta", 0.1},
                  {"restore_best_weights", false}}),
        callback("RestoringTheBest", "restore_best_weights", Json::object(), true),
        callback("RestoringTheBestByAMetric", "restore_best_weights", {{"monitor", "mae"}}, true),
        callback("ReducingOnPlateaus", "reduce_on_plateau",
                 {{"monitor", "train_loss"},
                  {"patience", "1ep"},
                  {"min_delta", 0.5},
                  {"cooldown", "1ep"},
                  {"min_rate", 1e-3}}),
        callback("Scaling", "scale_learning_rate", {{"when", kStalledLoss}, {"factor", 0.5}}),
        callback("Stopping", "stop", {{"when", {{"monitor", "hidden"}, {"stalled", {3, 100}}}}}),
        callback("Freezing", "freeze", {{"parameters", {"hidden.*"}}}),
        callback("Unfreezing", "freeze", {{"parameters", {"hidden.*"}}, {"until", kStalledLoss}}),
        callback("MovingAverage", "ema", {{"decay", 0.8}}),
        callback("MeanFromTheMiddle", "swa", {{"start", "40%"}, {"every", "2st"}}),
        callback("Guarding", "divergence_guard", {{"baseline_steps", 2}, {"growth", 1.01}}),
        callback("LoggingTheNorm", "log_gradient_norm"),
        callback("LimitingTime", "time_limit", {{"limit", "2h"}})),
    CaseName());

struct Trained {
  explicit Trained(const Json& callbacks, Rehearsed rehearsed = {})
      : rehearsal(rehearsed, make_all(callbacks)), result(rehearsal.train(context)) {}
  RecordingContext context;
  Rehearsal rehearsal;
  engine::TrainingResult result;
};

TEST(EarlyStopping, EndsWithTheBestWeights) {
  Trained trained(Json{{{"use", "early_stopping"}, {"patience", "2ep"}}},
                  {.epochs = 20, .contrary_validation = true});

  EXPECT_EQ(trained.result.total_epochs, 3);
  EXPECT_EQ(trained.result.best_epoch, 1);
  EXPECT_TRUE(trained.result.selects_best);
  EXPECT_EQ(trained.result.chosen_by, "val_loss");
  EXPECT_EQ(trained.result.stop_reason, "no improvement for 2 epochs (val_loss)");
  EXPECT_THAT(trained.context.epochs().back().decisions,
              ElementsAre("stopped: no improvement for 2 epochs (val_loss)"));
  EXPECT_EQ(trained.rehearsal.validate().loss, trained.context.epochs().front().val_loss);
}

TEST(EarlyStopping, MayLeaveTheLastWeights) {
  Trained trained(
      Json{{{"use", "early_stopping"}, {"patience", "2ep"}, {"restore_best_weights", false}}},
      {.epochs = 20, .contrary_validation = true});

  EXPECT_EQ(trained.result.total_epochs, 3);
  EXPECT_FALSE(trained.result.selects_best);
  EXPECT_EQ(trained.rehearsal.validate().loss, trained.context.epochs().back().val_loss);
}

// Evaluated in the epochs 2, 4, …: the first value is that of epoch 2.
TEST(EarlyStopping, CountsEpochsThatWereNotEvaluated) {
  const Trained trained(Json{{{"use", "early_stopping"}, {"patience", "3ep"}}},
                        {.epochs = 20, .evaluate_every = 2, .contrary_validation = true});

  EXPECT_EQ(trained.result.total_epochs, 6);
  EXPECT_EQ(trained.result.best_epoch, 2);
}

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

  int epoch_ = -1;  // the session looks at it once before the first epoch
};

TEST(RestoreBestWeights, AnyNumberIsBetterThanNone) {
  Rehearsal rehearsal({}, make_all({{{"use", "restore_best_weights"}, {"monitor", "late"}}}));
  LateMetric late;
  rehearsal.setup().metrics = {{&late, 0, number_target("price")}};
  RecordingContext context;

  EXPECT_EQ(rehearsal.train(context).best_epoch, 3);
}

TEST(Monitor, NamesWhatItCouldBe) {
  for (const auto& [callbacks, rehearsed, words] :
       std::vector<std::tuple<Json, Rehearsed, std::vector<std::string>>>{
           {{{{"use", "restore_best_weights"}, {"monitor", "accuracy"}}},
            {},
            {"/monitor", "\"accuracy\"", "train_loss", "val_loss", "mae"}},
           {{{{"use", "stop"}, {"when", {{"monitor", "mea"}, {"improving", 2}}}}},
            {},
            {"/when/monitor", "did you mean \"mae\"?"}},
           {{{{"use", "early_stopping"}}},
            {.has_validation = false},
            {"/monitor", "\"val_loss\"", "train_loss"}}}) {
    Rehearsal rehearsal(rehearsed, make_all(callbacks));
    RecordingContext context;
    try {
      rehearsal.train(context);
      ADD_FAILURE() << callbacks;
    } catch (const DocumentError& error) {
      for (const std::string& word : words)
        EXPECT_THAT(error.what(), HasSubstr(word));
    }
    EXPECT_TRUE(context.steps().empty()) << "it did not take an epoch to find out";
  }
}

// early_stopping asks for the names first, before the norm is logged.
TEST(Monitor, IsAlsoWhatALaterCallbackLogs) {
  const Trained trained(
      Json{{{"use", "early_stopping"}, {"monitor", "gradient_norm"}, {"patience", "100ep"}},
           {{"use", "stop"}, {"when", {{"monitor", "gradient_norm"}, {"below", 1e9}}}},
           {{"use", "log_gradient_norm"}}});

  EXPECT_EQ(trained.result.stop_reason, "gradient_norm below 1e+09");
}

TEST(Callbacks, OnlyOneChoosesTheWeightsTheTrainingEndsWith) {
  Rehearsal rehearsal({}, make_all({{{"use", "early_stopping"}},
                                    {{"use", "restore_best_weights"}, {"monitor", "mae"}}}));
  RecordingContext context;
  try {
    rehearsal.train(context);
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("/training"), HasSubstr("\"restore_best_weights\": false")));
  }
}

TEST(Callbacks, ATrainingHasOneAverage) {
  Rehearsal rehearsal({}, make_all({{{"use", "ema"}}, {{"use", "swa"}}}));
  RecordingContext context;

  EXPECT_THROW(rehearsal.train(context), DocumentError);
}

TEST(Callbacks, PatienceIsNotWallTime) {
  EXPECT_THROW(make("early_stopping", {{"patience", "10s"}}), DocumentError);
  EXPECT_THROW(make("time_limit", {{"limit", "3ep"}}), DocumentError);
}

EpochSummary with_loss(double loss) {
  EpochSummary row;
  row.train_loss = row.val_loss.emplace(loss);
  return row;
}

// By hand: the best is 5; 4.9 is better by less than 0.2, so after two epochs without an
// improvement the rate is multiplied; one epoch of cooldown is not counted.
TEST(ReduceOnPlateau, CountsEpochsWithoutAnImprovement) {
  RecordingControl control;
  control.planned_epochs = 100;
  const auto reduce =
      make("reduce_on_plateau",
           {{"patience", "2ep"}, {"factor", 0.5}, {"min_delta", 0.2}, {"cooldown", "1ep"}});
  reduce->begin(control);
  std::vector<double> factors;
  for (const double loss : {5.0, 4.9, 5.0, 4.9, 4.9, 4.9, 1.0, 1.0, std::nan("")}) {
    control.after_epoch(*reduce, with_loss(loss));
    factors.push_back(control.factor);
  }

  EXPECT_THAT(factors, ElementsAre(1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125));
  EXPECT_THAT(control.changes.front(),
              "3 learning rate times 0.5: no improvement of val_loss for 2 epochs");
}

// Of 5, 5, -, -, 5 the last is the second without an improvement.
TEST(Undefined, EpochsWithoutAValueCountForNothing) {
  const Number none = Number::undefined("all rows are of one class");
  const std::vector<Number> losses = {5.0, 5.0, none, none, 5.0, none, 5.0};
  RecordingControl reduced;
  RecordingControl stopped;
  reduced.planned_epochs = stopped.planned_epochs = 100;
  const auto reduce = make("reduce_on_plateau", {{"patience", "2ep"}, {"factor", 0.5}});
  const auto stop = make("early_stopping", {{"patience", "3ep"}});
  reduce->begin(reduced);
  stop->begin(stopped);
  std::vector<double> factors;
  std::vector<bool> stops;
  for (const Number& loss : losses) {
    EpochSummary row;
    row.train_loss = 1;
    row.val_loss = loss;
    reduced.after_epoch(*reduce, row);
    stopped.after_epoch(*stop, row);
    factors.push_back(reduced.factor);
    stops.push_back(!stopped.stop_reason.empty());
  }

  EXPECT_THAT(factors, ElementsAre(1, 1, 1, 1, 0.5, 0.5, 0.5));
  EXPECT_THAT(stops, ElementsAre(false, false, false, false, false, false, true));
}

TEST(ReduceOnPlateau, StopsAtTheLowestRate) {
  RecordingControl control;
  control.planned_epochs = 100;
  const auto reduce =
      make("reduce_on_plateau", {{"patience", "1ep"}, {"factor", 0.1}, {"min_rate", 0.004}});
  reduce->begin(control);
  for (int epoch = 0; epoch < 6; ++epoch)
    control.after_epoch(*reduce, with_loss(1));

  EXPECT_DOUBLE_EQ(control.learning_rate(), 0.004);  // of 0.1: 0.01, 0.004, and no further
  EXPECT_EQ(control.changes.size(), 2U);
}

StepReport step_of(std::int64_t step, double loss, bool updated = true) {
  StepReport report;
  report.step = step;
  report.loss = loss;
  report.updated = updated;
  return report;
}

// By hand: the baseline is (1 + 3) / 2 = 2; more than 10 times that, or 1.5 times the loss before,
// is an explosion.
TEST(DivergenceGuard, LowersTheRateWhileTheLossExplodes) {
  RecordingControl control;
  const auto guard =
      make("divergence_guard", {{"baseline_steps", 2}, {"min_factor", 0.2}, {"growth", 1.5}});
  guard->begin(control);
  EXPECT_EQ(control.tolerated, 10);
  std::vector<double> factors;
  std::int64_t step = 0;
  for (const double loss : {1.0, 3.0, 3.0, 4.6, 4.6, 21.0, 21.0}) {
    guard->after_step(step_of(++step, loss), control);
    factors.push_back(control.factor);
  }
  guard->after_step(step_of(++step, std::nan(""), false), control);
  factors.push_back(control.factor);

  const double recovered = 0.7 * 1.05;
  const std::vector<double> expected{
      1,
      1,
      1,
      0.7,
      recovered,
      recovered * 0.7,
      recovered * 0.7 * 0.7,  // still more than 10 times the baseline
      recovered * 0.7 * 0.7 * 0.7};
  ASSERT_EQ(factors.size(), expected.size());
  for (std::size_t i = 0; i < factors.size(); ++i)
    EXPECT_NEAR(factors[i], expected[i], 1e-12) << i;
  EXPECT_EQ(control.changes.size(), 1U);
}

TEST(DivergenceGuard, StaysWithinItsBounds) {
  RecordingControl control;
  const auto guard = make("divergence_guard", {{"baseline_steps", 1}, {"min_factor", 0.2}});
  guard->begin(control);
  guard->after_step(step_of(1, 1.0), control);
  for (int step = 2; step < 30; ++step)
    guard->after_step(step_of(step, 100.0), control);
  EXPECT_NEAR(control.factor, 0.2, 1e-12);
  for (int step = 30; step < 100; ++step)
    guard->after_step(step_of(step, 0.5), control);
  EXPECT_NEAR(control.factor, 1, 1e-12);
}

TEST(DivergenceGuard, SkipsStepsThatAreNotFinite) {
  Rehearsal rehearsal({.epochs = 2, .steep_loss = true},
                      make_all({{{"use", "divergence_guard"}, {"skip", 100}}}));
  const StateDict before = rehearsal.weights();
  RecordingContext context;

  const engine::TrainingResult result = rehearsal.train(context);

  EXPECT_EQ(result.skipped_steps, 6);
  EXPECT_EQ(result.skipped_at, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(
      context.epochs().back().decisions,
      Contains("skipped 3 steps because the loss or a gradient was not finite (step 4 5 6)"));
  const StateDict after = rehearsal.weights();
  for (const auto& [name, tensor] : before.tensors()) {
    if (tensor.is_floating_point()) {
      EXPECT_TRUE(at::equal(tensor, after.tensor(name))) << name;
    }
  }
  const auto& logged = context.epochs().back().logged;
  const auto skipped = std::find_if(logged.begin(), logged.end(), [](const MetricValue& value) {
    return value.name == "skipped_steps";
  });
  ASSERT_NE(skipped, logged.end());
  EXPECT_EQ(skipped->value, 3);  // all steps of an epoch
}

TEST(DivergenceGuard, EndsTheTrainingAfterTooManySkips) {
  Rehearsal rehearsal({.epochs = 2, .steep_loss = true},
                      make_all({{{"use", "divergence_guard"}, {"skip", 3}}}));
  RecordingContext context;

  EXPECT_THAT(training_error(rehearsal, context), HasSubstr("step 4"));
}

TEST(TimeLimit, EndsTheEpoch) {
  const Trained trained(Json{{{"use", "time_limit"}, {"limit", "0.000001s"}}});

  EXPECT_EQ(trained.result.total_epochs, 1);
  EXPECT_EQ(trained.context.steps().size(), 1U);
  EXPECT_THAT(trained.result.stop_reason, HasSubstr("time limit"));
  EXPECT_TRUE(trained.context.epochs().front().val_loss.has_value());
}

TEST(LogGradientNorm, IsTheMeanNormBeforeClipping) {
  Rehearsal rehearsal({.epochs = 1, .learning_rate = 0, .dropout = 0},
                      make_all({{{"use", "log_gradient_norm"}}}));
  rehearsal.setup().clipping.norm = 1e-3;
  RecordingContext context;
  rehearsal.train(context);

  // By hand: with a rate of 0 the weights stay, so each batch's gradient can be taken afterwards.
  double sum = 0;
  const auto stream = rehearsal.training().epoch(0);
  rehearsal.model().train();
  for (Batch batch; stream->next(batch);) {
    Outputs outputs(1);
    ForwardContext forward;
    rehearsal.model().zero_grad();
    rehearsal.model().forward(batch.inputs, outputs, forward);
    const at::Tensor each = outputs[0].sub(batch.targets[0]).square().sum(1).div(2);
    each.mul(batch.weights).sum().div(batch.weights.sum()).backward();
    double squares = 0;
    for (const at::Tensor& parameter : rehearsal.model().parameters())
      squares += parameter.grad().square().sum().item<double>();
    sum += std::sqrt(squares);
  }
  const auto& logged = context.epochs().front().logged;
  ASSERT_EQ(logged.back().name, "gradient_norm");
  EXPECT_NEAR(logged.back().value, sum / 3, 1e-12);
}

TEST(Freeze, LeavesTheParametersAsTheyAre) {
  Rehearsal rehearsal({}, make_all({{{"use", "freeze"}, {"parameters", {"hidden.*"}}}}));
  const StateDict before = rehearsal.weights();
  RecordingContext context;

  rehearsal.train(context);

  const StateDict after = rehearsal.weights();
  EXPECT_TRUE(at::equal(before.tensor("hidden.weight"), after.tensor("hidden.weight")));
  EXPECT_FALSE(at::equal(before.tensor("output.weight"), after.tensor("output.weight")));
}

TEST(Freeze, RefusesToLeaveNothingToTrain) {
  Rehearsal rehearsal({}, make_all({{{"use", "freeze"}, {"parameters", {"*"}}}}));
  RecordingContext context;
  try {
    rehearsal.train(context);
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("leaves nothing to train"));
  }
}

/// The weights after each step, by the checkpoints of a training that saves each step.
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

TEST(Averages, AMovingAverageIsEvaluatedAndEndedWith) {
  Rehearsal rehearsal({.epochs = 2, .checkpoint_every = {1, Duration::Unit::kSteps}},
                      make_all({{{"use", "ema"}, {"decay", 0.75}}}));
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
  EXPECT_EQ(rehearsal.validate().loss, context.epochs().back().val_loss);
}

TEST(Averages, TheResultSaysWhetherItsWeightsAreOne) {
  const auto has_average = [](const Json& callbacks) {
    return Trained(callbacks, {.epochs = 6, .contrary_validation = true}).result.has_average;
  };
  const Json best{{"use", "restore_best_weights"}};  // those of the first epoch
  EXPECT_FALSE(has_average(Json::array()));
  EXPECT_TRUE(has_average({{{"use", "ema"}}}));
  EXPECT_TRUE(has_average({{{"use", "ema"}}, best}));
  EXPECT_TRUE(has_average({{{"use", "swa"}, {"start", "60%"}}}));
  EXPECT_FALSE(has_average({{{"use", "swa"}, {"start", "60%"}}, best}));
}

TEST(Averages, AMeanIsThatOfTheLastEpochs) {
  Rehearsal rehearsal({.checkpoint_every = {1, Duration::Unit::kEpochs}},
                      make_all({{{"use", "swa"}, {"start", "60%"}}}));
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

TEST(Averages, TheMeanHasStatisticsOfItsOwn) {
  Rehearsal rehearsal({}, make_all({{{"use", "swa"}, {"start", "40%"}}}));
  Normalizing model;
  rehearsal.setup().model = &model;
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
  EXPECT_EQ(rehearsal.validate().loss, context.epochs().back().val_loss);
}

}  // namespace
}  // namespace treadle::testing
