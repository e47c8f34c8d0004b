#include <treadle/engine/weight_average.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace {

/// Weights and buffers that a test sets as it likes.
class Settable : public Model {
 public:
  explicit Settable(std::int64_t size = 3) {
    weight = register_parameter("weight", at::zeros({size}, at::kDouble));
    mean = register_buffer("mean", at::zeros({2}, at::kDouble));
    batches = register_buffer("batches", at::zeros({1}, at::kLong));
  }
  void forward(const Inputs&, Outputs&, ForwardContext&) override {}

  void set(double value) {
    const at::NoGradGuard no_gradients;
    weight.fill_(value);
    mean.fill_(10 * value);
    batches.fill_(static_cast<std::int64_t>(value));
  }

  at::Tensor weight;
  at::Tensor mean;
  at::Tensor batches;
};

class WeightAverages : public ::testing::Test {
 protected:
  /// The average of a training whose weights are weights[s] after s steps.
  std::unique_ptr<WeightAverage> after(const std::vector<double>& weights,
                                       const AveragingPlan& plan) {
    auto average = std::make_unique<WeightAverage>(arena, model, plan);
    for (std::size_t step = 0; step < weights.size(); ++step) {
      model.set(weights[step]);
      average->add_after(static_cast<std::int64_t>(step));
    }
    return average;
  }

  /// Every weight and every mean of the model, which are alike.
  void expect_model(double weight, double mean, std::int64_t batches) {
    EXPECT_TRUE(at::equal(model.weight.detach(), at::full({3}, weight, at::kDouble)))
        << model.weight.detach()[0].item<double>();
    EXPECT_TRUE(at::equal(model.mean, at::full({2}, mean, at::kDouble)))
        << model.mean[0].item<double>();
    EXPECT_EQ(model.batches.item<std::int64_t>(), batches);
  }

  Settable model;
  ParameterArena arena{model};
};

// s = 4; 0.75 * 4 + 0.25 * 8 = 5; 0.75 * 5 + 0.25 * 1 = 4; the means are ten times as large.
TEST_F(WeightAverages, WithADecayBeginAsACopyAndFollowTheWeights) {
  const auto average = after({4, 8, 1}, {.decay = 0.75});

  EXPECT_EQ(average->count(), 3);
  average->put_in();
  expect_model(4, 40, 1);
}

// After the steps 2, 5 and 8: (3 + 9 + 6) / 3.
TEST_F(WeightAverages, WithoutOneAreTheMeanOfThePlannedMoments) {
  const auto average = after({100, 100, 3, 100, 100, 9, 100, 100, 6, 7}, {.start = 2, .every = 3});

  EXPECT_EQ(average->count(), 3);
  average->put_in();
  expect_model(6, 70, 7);  // the buffers are those of now
}

TEST_F(WeightAverages, LeaveTheTrainingsOwnWeightsAlone) {
  const auto average = after({4, 8, 1}, {.decay = 0.75});
  expect_model(1, 10, 1);

  average->put_in();
  model.mean.fill_(-1);  // such as a refresh of batch normalization
  average->take_out();

  expect_model(1, 10, 1);
  average->put_in();
  expect_model(4, 40, 1);
}

TEST_F(WeightAverages, AreNotThereBeforeTheirStart) {
  const auto average = after({1, 2, 3}, {.start = 3});

  EXPECT_EQ(average->count(), 0);
  EXPECT_THROW(average->put_in(), ContractViolation);
}

TEST_F(WeightAverages, TakeNothingWhileTheyAreInTheModel) {
  const auto average = after({1, 2}, {});
  average->put_in();

  EXPECT_THROW(average->add_after(2), ContractViolation);
  EXPECT_THROW(average->put_in(), ContractViolation);
}

TEST_F(WeightAverages, GoOnFromTheirStateAsIfTheyHadNeverStopped) {
  for (const AveragingPlan& plan : {AveragingPlan{.decay = 0.9}, AveragingPlan{}}) {
    const std::vector<double> weights{0.3, 0.7, -2.1, 5.9, 0.1};
    for (std::size_t stop = 0; stop <= weights.size(); ++stop) {
      const auto through = after(weights, plan);
      through->put_in();
      const at::Tensor expected = model.weight.detach().clone();
      const at::Tensor expected_mean = model.mean.clone();
      through->take_out();

      const StateDict state =
          after({weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(stop)}, plan)
              ->state()
              .snapshot();
      WeightAverage resumed(arena, model, plan);
      resumed.load_state(state);
      for (std::size_t step = stop; step < weights.size(); ++step) {
        model.set(weights[step]);
        resumed.add_after(static_cast<std::int64_t>(step));
      }
      model.set(weights.back());
      resumed.put_in();

      EXPECT_TRUE(at::equal(model.weight.detach(), expected)) << stop;
      EXPECT_TRUE(at::equal(model.mean, expected_mean)) << stop;
    }
  }
}

TEST_F(WeightAverages, OfAnotherModelAreRefused) {
  const StateDict state = after({1, 2}, {})->state();
  Settable larger(300);
  ParameterArena its_arena(larger);
  WeightAverage average(its_arena, larger, {});

  try {
    average.load_state(state);
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_STREQ(error.what(),
                 "the saved average of the weights belongs to a model with other parameters");
  }
}

TEST_F(WeightAverages, NeedAPlanThatMakesSense) {
  EXPECT_THROW(WeightAverage(arena, model, {.start = -1}), ContractViolation);
  EXPECT_THROW(WeightAverage(arena, model, {.every = 0}), ContractViolation);
  EXPECT_THROW(WeightAverage(arena, model, {.decay = 1.0}), ContractViolation);
  EXPECT_THROW(WeightAverage(arena, model, {.decay = 0.0}), ContractViolation);
}

}  // namespace
}  // namespace treadle::engine
