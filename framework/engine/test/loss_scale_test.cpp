#include <treadle/engine/loss_scale.h>

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <treadle/engine/thread_budget.h>
#include <treadle/engine/training_step.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/training/training_fakes.h>

#include "test/squared_error.h"

namespace treadle::engine::scaled_steps {
namespace {

constexpr double kRate = 0.05;

TEST(LossScale, IsHalvedByAnOverflowAndDoubledAfterManyStepsWithout) {
  LossScale scale;
  EXPECT_EQ(scale.scale, 65536);
  scale.update(true);
  EXPECT_EQ(scale.scale, 32768);
  for (int i = 0; i < 1999; ++i)
    scale.update(false);
  EXPECT_EQ(scale.scale, 32768);
  scale.update(false);
  EXPECT_EQ(scale.scale, 65536);
  for (int i = 0; i < 1999; ++i)
    scale.update(false);
  scale.update(true);
  EXPECT_EQ(scale.scale, 32768);
  for (int i = 0; i < 1999; ++i)
    scale.update(false);
  EXPECT_EQ(scale.scale, 32768) << "an overflow begins the count anew";
}

TEST(LossScale, GrowsNoLargerThanAFloat) {
  LossScale scale{std::ldexp(1.0, 127), 1999};
  scale.update(false);
  EXPECT_EQ(scale.scale, std::ldexp(1.0, 127));
  EXPECT_EQ(scale.good_steps, 0);
}

TEST(LossScale, DividesByAPowerOfTwo) {
  EXPECT_EQ(LossScale::divisor(1), 1);
  EXPECT_EQ(LossScale::divisor(5), 8);
  EXPECT_EQ(LossScale::divisor(64), 64);
  EXPECT_EQ(LossScale::divisor(65), 128);
  EXPECT_EQ(LossScale::divisor(0), 1) << "a batch without rows";
}

/// A linear layer whose gradients pass through float16, where it `narrows`.
class Narrowing final : public Model {
 public:
  explicit Narrowing(bool narrows) : narrows_(narrows) {
    const TaskRandom random(1);
    linear_ = register_module("linear", torch::nn::Linear(3, 2));
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = linear_->forward(inputs[0]);
    if (narrows_)
      outputs[0] = outputs[0].to(at::kHalf).to(at::kFloat);
  }

 private:
  bool narrows_;
  torch::nn::Linear linear_{nullptr};
};

/// `distance`: of the targets. The gradients of 8 rows at a distance of 100 need a scale of no more
/// than 4096.
Batch batch_of(std::int64_t step, std::int64_t rows = 8, double distance = 1) {
  const at::Generator generator = make_generator(static_cast<std::uint64_t>(step));
  Batch batch;
  batch.inputs = {at::randn({rows, 3}, generator)};
  batch.targets = batch.original_targets = {at::randn({rows, 2}, generator).sign().mul(distance)};
  batch.rows = at::zeros({rows}, at::kLong);
  return batch;
}

struct Case {
  const char* name;
  ParameterView::Path path;
};

/// As the host and as a device keeps the numbers.
class ScaledSteps : public ::testing::TestWithParam<Case> {
 protected:
  StepOptions scaled(Clipping clipping = {}) const {
    StepOptions options{.clipping = clipping};
    options.path = GetParam().path;
    options.precision.scales_loss = true;
    return options;
  }
  StepOptions unscaled(Clipping clipping = {}) const {
    StepOptions options = scaled(clipping);
    options.precision.scales_loss = false;
    return options;
  }

  const ObjectiveOf<SquaredError> loss_;
  const testing::MomentumDescent optimizer_{kRate};
};

TEST_P(ScaledSteps, HaveTheBitsOfUnscaledOnesWhereNothingOverflows) {
  for (const Clipping clipping : {Clipping{}, Clipping{.norm = 0.1}, Clipping{.value = 0.01}}) {
    Narrowing model(false);
    Narrowing beside(false);
    TrainingStep step(model, loss_, optimizer_, scaled(clipping));
    TrainingStep plain(beside, loss_, optimizer_, unscaled(clipping));
    for (std::int64_t i = 1; i <= 20; ++i) {
      step.run(batch_of(i, 3 + i % 7), i, kRate, 0);
      plain.run(batch_of(i, 3 + i % 7), i, kRate, 0);
    }
    EXPECT_TRUE(at::equal(step.arena().parameters(), plain.arena().parameters()));
    EXPECT_EQ(step.totals().value(), plain.totals().value()) << "what is shown is not scaled";
  }
}

TEST_P(ScaledSteps, SkipHalveAndRecover) {
  Narrowing model(true);
  TrainingStep step(model, loss_, optimizer_, scaled());
  step.run(batch_of(1), 1, kRate, 0);
  const at::Tensor before = step.arena().parameters().clone();
  EXPECT_EQ(step.record().skipped, 0);

  for (std::int64_t i = 2; i <= 5; ++i)
    step.run(batch_of(i, 8, 100), i, kRate, 0);
  EXPECT_TRUE(at::equal(step.arena().parameters(), before));
  EXPECT_EQ(step.record().skipped, 4);
  EXPECT_EQ(step.record().skipped_at, (std::vector<std::int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(step.record().loss_scale.scale, 4096);
  EXPECT_EQ(step.record().diverged_at, 0);

  step.run(batch_of(6, 8, 100), 6, kRate, 0);
  EXPECT_FALSE(at::equal(step.arena().parameters(), before));
  EXPECT_EQ(step.record().skipped_in_a_row, 0);
  EXPECT_EQ(step.record().loss_scale.good_steps, 1);
  step.clear_totals();
  EXPECT_EQ(step.record().skipped, 0);
  EXPECT_TRUE(step.record().skipped_at.empty());
  EXPECT_EQ(step.record().loss_scale.scale, 4096) << "it belongs to the training, not to an epoch";
}

TEST_P(ScaledSteps, CountEverySkippedStepAndListTheFirst) {
  Narrowing model(true);
  TrainingStep step(model, loss_, optimizer_, scaled());
  std::int64_t skipped = 0;
  for (std::int64_t i = 1; i <= 80; ++i) {
    const bool overflows = i % 2 == 0;
    step.run(batch_of(i, 8, overflows ? INFINITY : 1), i, kRate, 0);
    skipped += overflows ? 1 : 0;
  }
  EXPECT_EQ(step.record().skipped, skipped);
  ASSERT_EQ(step.record().skipped_at.size(), 32U);
  EXPECT_EQ(step.record().skipped_at.front(), 2);
  EXPECT_EQ(step.record().skipped_at.back(), 64);
}

TEST_P(ScaledSteps, AreADivergenceWhereTheScaleIsNotWhatOverflows) {
  Narrowing model(true);
  TrainingStep step(model, loss_, optimizer_, scaled());
  for (std::int64_t i = 1; i <= 30; ++i)
    step.run(batch_of(i, 8, INFINITY), i, kRate, 0);
  EXPECT_EQ(step.record().diverged_at, 0);
  step.run(batch_of(31, 8, INFINITY), 31, kRate, 0);
  EXPECT_EQ(step.record().diverged_at, 31);
  EXPECT_LT(step.record().loss_scale.scale, 1e-4);
}

TEST_P(ScaledSteps, GrowAgain) {
  Narrowing model(true);
  TrainingStep step(model, loss_, optimizer_, scaled());
  step.run(batch_of(1, 8, INFINITY), 1, kRate, 0);
  StateDict almost = step.numbers();
  almost.put("good_steps", nlohmann::json(1998));
  step.set_numbers(almost);
  step.run(batch_of(2), 2, kRate, 0);
  EXPECT_EQ(step.record().loss_scale.scale, 32768);
  step.run(batch_of(3), 3, kRate, 0);
  EXPECT_EQ(step.record().loss_scale.scale, 65536);
  EXPECT_EQ(step.record().loss_scale.good_steps, 0);
}

TEST_P(ScaledSteps, ContinueToTheSameBitsFromEveryStep) {
  const auto distance = [](std::int64_t step) { return step % 3 == 0 ? 100.0 : 1.0; };
  Narrowing whole_model(true);
  TrainingStep whole(whole_model, loss_, optimizer_, scaled());
  for (std::int64_t i = 1; i <= 12; ++i)
    whole.run(batch_of(i, 8, distance(i)), i, kRate, 0);

  for (std::int64_t stop = 1; stop < 12; ++stop) {
    Narrowing first_model(true);
    Narrowing second_model(true);
    TrainingStep first(first_model, loss_, optimizer_, scaled());
    TrainingStep second(second_model, loss_, optimizer_, scaled());
    for (std::int64_t i = 1; i <= stop; ++i)
      first.run(batch_of(i, 8, distance(i)), i, kRate, 0);
    second.arena().parameters().copy_(first.arena().parameters());
    second.slots().load_state(first.slots().state());
    second.set_numbers(first.numbers());
    for (std::int64_t i = stop + 1; i <= 12; ++i)
      second.run(batch_of(i, 8, distance(i)), i, kRate, 0);
    EXPECT_TRUE(at::equal(second.arena().parameters(), whole.arena().parameters())) << stop;
    EXPECT_EQ(second.record().skipped_at, whole.record().skipped_at) << stop;
    EXPECT_EQ(second.record().loss_scale.scale, whole.record().loss_scale.scale) << stop;
  }
}

TEST_P(ScaledSteps, ScaleEveryShardAlike) {
  // Pairs of modules are looked for, so they are held as libtorch holds them.
  const auto model = std::make_shared<Narrowing>(true);
  const auto replica = std::make_shared<Narrowing>(true);
  const auto beside = std::make_shared<Narrowing>(true);
  const auto its_replica = std::make_shared<Narrowing>(true);
  StepOptions options = scaled();
  options.replicas = {replica.get()};
  StepOptions plain_options = unscaled();
  plain_options.replicas = {its_replica.get()};
  ThreadBudget budget(2);
  budget.run([&] {
    TrainingStep step(*model, loss_, optimizer_, options);
    TrainingStep plain(*beside, loss_, optimizer_, plain_options);
    for (std::int64_t i = 1; i <= 6; ++i) {
      step.run(batch_of(i, 7), i, kRate, 0);
      plain.run(batch_of(i, 7), i, kRate, 0);
    }
    EXPECT_TRUE(at::allclose(step.arena().parameters(), plain.arena().parameters(), 1e-3, 1e-3));
    EXPECT_EQ(step.record().skipped, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(On, ScaledSteps,
                         ::testing::Values(Case{"Host", ParameterView::Path::kFastest},
                                           Case{"Device", ParameterView::Path::kTensors}),
                         [](const auto& one) { return one.param.name; });

// Both paths see the same overflows.
TEST(ScaledSteps, HostAndDeviceSkipTheSame) {
  const ObjectiveOf<SquaredError> loss;
  const testing::MomentumDescent optimizer(kRate);
  std::vector<StepRecord> records;
  for (const auto path : {ParameterView::Path::kFastest, ParameterView::Path::kTensors}) {
    Narrowing model(true);
    StepOptions options{.path = path};
    options.precision.scales_loss = true;
    TrainingStep step(model, loss, optimizer, options);
    for (std::int64_t i = 1; i <= 40; ++i)
      step.run(batch_of(i, 8, static_cast<double>(i * i * i)), i, kRate, 0);
    records.push_back(step.record());
  }
  EXPECT_GT(records[0].skipped, 2);
  EXPECT_EQ(records[0].skipped_at, records[1].skipped_at);
  EXPECT_EQ(records[0].loss_scale.scale, records[1].loss_scale.scale);
  EXPECT_EQ(records[0].loss_scale.good_steps, records[1].loss_scale.good_steps);
}

}  // namespace
}  // namespace treadle::engine::scaled_steps
