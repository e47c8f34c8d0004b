// Trainings on a device that is not there: everything but the kernels of a GPU's training.
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <treadle/engine/thread_budget.h>
#include <treadle/engine/training_step.h>
#include <treadle/engine/weight_average.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/whole_training.h>
#include <treadle/testing/training/device_contract.h>

#include "far_backend.h"
#include "far_memory.h"
#include "far_operators.h"

namespace treadle::testing {
namespace {

constexpr auto kTensors = ParameterView::Path::kTensors;

c10::Device far_device() {
  far::install();
  return {far::kType, 0};
}

Rehearsed on(c10::Device device, Rehearsed rehearsed = {}) {
  rehearsed.device = device;
  rehearsed.path = kTensors;
  return rehearsed;
}

std::unique_ptr<Rehearsal> training(const Rehearsed& rehearsed) {
  return std::make_unique<Rehearsal>(rehearsed);
}

TEST(FarDevice, CannotBeReadByTheHost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const at::Tensor tensor = at::ones({4}, far_device());

  EXPECT_DEATH(
      {
        const volatile float value = *static_cast<float*>(tensor.data_ptr());
        static_cast<void>(value);
      },
      "");
}

INSTANTIATE_TEST_SUITE_P(Far, DeviceContract,
                         ::testing::Values(DeviceCase{"Far",
                                                      [] {
                                                        const Config none(nlohmann::json::object());
                                                        return std::make_unique<far::Far>(none);
                                                      },
                                                      /*tolerance=*/0, /*counts_tensors=*/true}),
                         CaseName());

// Of accelerators that have it in one kernel, such as CUDA.
TEST(FarDevice, FusedDropoutDrawsFromTheTask) {
  const at::Tensor input = at::ones({1000}, far_device());
  const auto drop = [&](std::uint64_t seed) {
    const TaskRandom random(seed);
    const auto [output, mask] = at::native_dropout(input, 0.25, /*train=*/true);
    return std::make_pair(output.cpu(), mask.cpu());
  };

  const auto [output, mask] = drop(3);

  EXPECT_TRUE(at::equal(output, mask.to(at::kFloat).div(0.75F)));
  EXPECT_NEAR(mask.to(at::kFloat).mean().item<float>(), 0.75, 0.05);
  EXPECT_TRUE(at::equal(drop(3).first, output));
  EXPECT_FALSE(at::equal(drop(4).first, output));
}

TEST(FarDevice, AGraphTakesInputsOfTheHost) {
  const auto graph = graph::FlowBuilder::from(torch::nn::Linear(2, 3)).build();
  const at::Tensor input = at::ones({4, 2});
  const at::Tensor as_before = graph->forward(input);

  graph->to(far_device());

  const at::Tensor output = graph->forward(input);
  EXPECT_EQ(output.device(), far_device());
  EXPECT_TRUE(at::equal(output.cpu(), as_before));
}

TEST(FarDevice, CountsWhatTheHostReads) {
  const at::Tensor tensor = at::ones({4}, far_device());
  const std::int64_t waits = far::traffic().waits;
  const std::int64_t copies = far::traffic().to_host;

  EXPECT_EQ(tensor.sum().item<float>(), 4);
  EXPECT_EQ(tensor.cpu().numel(), 4);

  EXPECT_EQ(far::traffic().waits - waits, 1);
  EXPECT_EQ(far::traffic().to_host - copies, 1);
}

TEST(FarTrainings, HaveTheBitsOfTensorsOnACpu) {
  int number = 0;
  for (const Rehearsed& situation : situations()) {
    SCOPED_TRACE("situation " + std::to_string(number++));
    const Whole here(training(on(c10::kCPU, situation)));
    const Whole there(training(on(far_device(), situation)));

    expect_same_result(there.result, here.result);
    expect_same_history(there.context.epochs(), here.context.epochs());
    EXPECT_TRUE(same_bits(there.rehearsal->weights(), here.rehearsal->weights()));
  }
}

TEST(FarTrainings, StayBesideTheFastestWayOnACpu) {
  Rehearsal fastest;
  Rehearsal far(on(far_device()));
  RecordingContext context;
  RecordingContext other;

  fastest.train(context);
  far.train(other);

  const StateDict expected = fastest.weights();
  const StateDict got = far.weights();
  for (const auto& [name, tensor] : expected.tensors())
    EXPECT_TRUE(tensor.allclose(got.tensor(name), 1e-12, 1e-12)) << name;
}

TEST(FarTrainings, StopAndResumeLikeAnyOther) {
  expect_stops_after_every_step_change_nothing([] { return training(on(far_device())); });
  expect_every_checkpoint_leads_to_the_same_end(
      [] { return training(on(far_device(), {.keeps_state = true})); });
}

TEST(FarTrainings, ContinueWhereACpuStopped) {
  const Whole here(training(on(c10::kCPU)));
  for (const RecordingContext::Saved& saved : here.context.checkpoints()) {
    RecordingContext context(here.context, saved);
    expect_same_end(
        context, [] { return training(on(far_device())); }, here);
  }
}

TEST(FarTrainings, ADivergedOneNamesItsStepAndKeepsItsWeights) {
  const auto diverged = [](c10::Device device) {
    Rehearsal rehearsal(on(device));
    RecordingContext context;
    rehearsal.training().spoil(1, 1);
    const std::string error = training_error(rehearsal, context);
    EXPECT_NE(error.find("step " + std::to_string(rehearsal.steps_per_epoch() + 2)),
              std::string::npos)
        << error;
    EXPECT_TRUE(is_finite(rehearsal.weights()));
    return rehearsal.weights();
  };

  EXPECT_TRUE(same_bits(diverged(far_device()), diverged(c10::kCPU)));
}

TEST(FarTrainings, GiveTheirMemoryBack) {
  const std::int64_t before = far::usage().in_use;
  {
    const Whole there(training(on(far_device())));
    EXPECT_GT(far::usage().in_use, before);
  }
  EXPECT_EQ(far::usage().in_use, before);
}

// --- one step
// --------------------------------------------------------------------------------------

Batch random_batch(std::uint64_t seed) {
  const TaskRandom random(seed);
  Batch batch;
  batch.inputs = {at::randn({12, 2}, at::kDouble)};
  batch.targets = batch.original_targets = {at::randn({12, 1}, at::kDouble)};
  batch.weights = at::rand({12}, at::kDouble);
  batch.rows = at::arange(12);
  return batch;
}

Batch batch_on(c10::Device device, std::uint64_t seed) {
  return random_batch(seed).to(device);
}

struct Steps {
  explicit Steps(c10::Device device, engine::StepOptions options = {}, std::size_t replicas = 0)
      : model_(std::make_shared<TinyModel>(1)), model(*model_) {
    model.to(device);
    for (std::size_t i = 0; i < replicas; ++i) {
      others.push_back(std::make_shared<TinyModel>(1));
      others.back()->to(device);
      options.replicas.push_back(others.back().get());
    }
    options.path = kTensors;
    step = std::make_unique<engine::TrainingStep>(model, objective, optimizer, options);
    model.train();
  }

  std::shared_ptr<TinyModel> model_;
  TinyModel& model;
  std::vector<std::shared_ptr<TinyModel>> others;
  SquaredError loss;
  Objective objective = objective_of(loss);
  MomentumDescent optimizer{0.01};
  std::unique_ptr<engine::TrainingStep> step;
};

TEST(FarStep, NeitherWaitsForTheDeviceNorCopiesFromIt) {
  Steps steps(far_device(), {.clipping = {.norm = 1, .value = 5}});
  steps.step->measure({.batch_loss = true, .gradient_norm = true});
  engine::WeightAverage average(steps.step->arena(), steps.model, {.decay = 0.9});
  steps.step->average_into(average);
  const auto run = [&](std::int64_t step) {
    const Batch batch = batch_on(far_device(), static_cast<std::uint64_t>(step));
    steps.step->run(batch, step, 0.01, static_cast<std::uint64_t>(step));
  };
  run(1);
  const std::int64_t waits = far::traffic().waits;
  const std::int64_t copies = far::traffic().to_host;

  for (std::int64_t step = 2; step <= 20; ++step)
    run(step);

  EXPECT_EQ(far::traffic().waits - waits, 0);
  EXPECT_EQ(far::traffic().to_host - copies, 0);
  EXPECT_EQ(steps.step->record().totals.rows(), 20 * 12);
  EXPECT_EQ(far::traffic().to_host - copies, 1) << "all numbers of the record together";
  EXPECT_EQ(average.count(), 20);
}

TEST(FarStep, ShardsHaveTheBitsOfTensorsOnACpu) {
  engine::ThreadBudget(2).run([] {
    Steps here(c10::kCPU, {.clipping = {.norm = 0.1}}, 2);
    Steps there(far_device(), {.clipping = {.norm = 0.1}}, 2);
    for (std::int64_t step = 1; step <= 6; ++step) {
      const auto seed = static_cast<std::uint64_t>(step);
      here.step->run(batch_on(c10::kCPU, seed), step, 0.01, seed);
      there.step->run(batch_on(far_device(), seed), step, 0.01, seed);
    }
    EXPECT_TRUE(same_bits(module_state(there.model).snapshot(), module_state(here.model)));
    EXPECT_EQ(there.step->totals().value(), here.step->totals().value());
  });
}

TEST(FarStep, SkipsWhatIsNotFiniteAndCountsItThere) {
  Steps steps(far_device());
  steps.step->tolerate_skipped(1);
  engine::WeightAverage average(steps.step->arena(), steps.model, {.decay = 0.9});
  steps.step->average_into(average);
  const auto run = [&](std::int64_t step, bool spoiled) {
    Batch batch = random_batch(static_cast<std::uint64_t>(step));
    if (spoiled)
      batch.targets[0][0][0] = NAN;
    steps.step->run(batch.to(far_device()), step, 0.01, 7);
  };
  run(1, false);
  const StateDict before = module_state(steps.model).snapshot();
  const StateDict slots = steps.step->slots().state().snapshot();

  run(2, true);

  const StateDict after = module_state(steps.model).snapshot();
  for (const auto& [name, tensor] : before.tensors()) {
    if (name != "rows_seen") {
      EXPECT_TRUE(at::equal(after.tensor(name), tensor)) << name;
    }
  }
  EXPECT_TRUE(same_bits(steps.step->slots().state().snapshot(), slots));
  EXPECT_EQ(steps.step->record().skipped, 1);
  EXPECT_EQ(steps.step->record().skipped_in_a_row, 1);
  EXPECT_EQ(steps.step->record().diverged_at, 0);
  EXPECT_EQ(steps.step->record().totals.rows(), 12);
  EXPECT_EQ(average.count(), 1);
  run(3, false);
  EXPECT_EQ(steps.step->record().skipped_in_a_row, 0);
  run(4, true);
  run(5, true);
  EXPECT_EQ(steps.step->record().diverged_at, 5);
  const StateDict diverged = module_state(steps.model).snapshot();
  run(6, false);  // too late
  const StateDict last = module_state(steps.model).snapshot();
  EXPECT_TRUE(at::equal(last.tensor("hidden.weight"), diverged.tensor("hidden.weight")));
}

}  // namespace
}  // namespace treadle::testing
