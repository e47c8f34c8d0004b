// Steps that are recorded and replayed, on a device that is not there.
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/model/linear.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/training_step.h>
#include <treadle/engine/weight_average.h>
#include <treadle/tensor/device_streams.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/rehearsal.h>
#include <treadle/testing/training/training_fakes.h>

#include "far_backend.h"
#include "far_operators.h"

namespace treadle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const far::Far& backend() {
  static const far::Far kBackend{Config(nlohmann::json::object())};
  static const FoundDevices kFound = kBackend.find();
  return kBackend;
}

c10::Device device() {
  return backend().find().devices.front().device;
}

/// A network that draws and has a state that it carries on, whose output `twist` may change.
class Net final : public Model {
 public:
  using Twist = std::function<at::Tensor(Net&, const at::Tensor&, ForwardContext&)>;

  explicit Net(Twist twist = {}) : twist_(std::move(twist)) {
    const TaskRandom random(3);
    hidden = register_module("hidden", torch::nn::Linear(2, 5));
    head = register_module("head", torch::nn::Linear(5, 1));
    seen = register_buffer("seen", at::zeros({}));
    to(at::kDouble);
    to(device());
    train();
  }

  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear head{nullptr};
  at::Tensor seen;
  double number_of_host = 1;

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    at::Tensor x = hidden->forward(inputs[0]).tanh();
    if (context.state().has_tensor("last"))
      x = x + 0.1 * context.state().tensor("last");
    context.state().put("last", x.mean({0}));
    x = x * at::rand_like(x).ge(0.3).div(0.7);
    if (twist_)
      x = twist_(*this, x, context);
    {
      const at::NoGradGuard no_gradients;
      seen.add_(inputs[0].sum());
    }
    context.log("size", x, Reduction::kNorm);
    outputs[0] = head->forward(x);
    context.add_loss("penalty", 0.01 * x.square().sum());
  }

 private:
  Twist twist_;
};

Batch batch_of(std::int64_t rows, std::uint64_t seed) {
  const TaskRandom random(seed);
  Batch batch;
  batch.inputs = {at::randn({rows, 2}, at::kDouble)};
  batch.targets = batch.original_targets = {at::randn({rows, 1}, at::kDouble)};
  batch.weights = at::rand({rows}, at::kDouble);
  batch.rows = at::arange(rows);
  return batch.to(device());
}

/// A training of `steps` steps, every fifth batch of another size.
struct Trained {
  explicit Trained(const DeviceBackend* capture, Net::Twist twist = {}, std::size_t shards = 1,
                   engine::StepOptions options = {})
      : net(std::make_shared<Net>(twist)) {
    options.capture = capture;
    options.clipping = {.norm = 1};
    for (std::size_t i = 1; i < shards; ++i) {
      replicas.push_back(std::make_shared<Net>(twist));
      options.replicas.push_back(replicas.back().get());
    }
    net->prepare_for(options.precision);
    for (const auto& replica : replicas)
      replica->prepare_for(options.precision);
    step.emplace(*net, objective, optimizer, options);
    step->measure({.batch_loss = true, .gradient_norm = true});
    average.emplace(step->arena(), *net,
                    engine::AveragingPlan{.start = 2, .every = 2, .decay = 0.9});
    step->average_into(*average);
  }

  void run(std::int64_t from, std::int64_t to) {
    const StreamScope scope(stream);
    for (std::int64_t i = from; i <= to; ++i) {
      const auto seed = static_cast<std::uint64_t>(i);
      step->run(batch_of(i % 5 == 0 ? 7 : 12, seed), i, 0.1 / static_cast<double>(i), seed);
    }
  }

  /// All that a training leaves.
  StateDict state() {
    const StreamScope scope(stream);
    StateDict all;
    all.put("model", module_state(*net).snapshot());
    all.put("optimizer", step->slots().state().snapshot());
    all.put("average", average->state().snapshot());
    all.put("recurrent", step->model_state().snapshot());
    all.put("numbers", step->numbers().snapshot());
    return all;
  }

  const c10::Stream stream = another_stream(device());
  std::shared_ptr<Net> net;
  std::vector<std::shared_ptr<Net>> replicas;
  SquaredError loss;
  Objective objective = objective_of(loss);
  MomentumDescent optimizer{0.1};
  std::optional<engine::TrainingStep> step;
  std::optional<engine::WeightAverage> average;
};

TEST(CapturedSteps, HaveTheBitsOfStepsThatAreCarriedOut) {
  for (const std::size_t shards : {1U, 3U}) {
    engine::ThreadBudget(2).run([&] {
      Trained eager(nullptr, {}, shards);
      Trained captured(&backend(), {}, shards);
      eager.run(1, 30);
      captured.run(1, 30);

      EXPECT_TRUE(same_bits(captured.state(), eager.state())) << shards << " shards";
      EXPECT_GT(captured.step->replayed(), 15);
      EXPECT_EQ(captured.step->why_not_captured(), "");
      EXPECT_EQ(captured.step->record().gradient_norm, eager.step->record().gradient_norm);
      EXPECT_EQ(captured.step->record().batch.value(), eager.step->record().batch.value());
    });
  }
}

// What a step measures is of the step alone: what is recorded with it must become history in it.
TEST(CapturedSteps, AdvanceTheScalesOfFp8) {
  const Net::Twist product = [](Net& net, at::Tensor x, ForwardContext&) {
    return x * linear_in_precision(x, net.head->weight, {});
  };
  engine::StepOptions options;
  options.precision = precision_named("fp8-delayed");
  for (const std::size_t shards : {1U, 3U}) {
    engine::ThreadBudget(2).run([&] {
      Trained eager(nullptr, product, shards, options);
      Trained captured(&backend(), product, shards, options);
      eager.run(1, 30);
      captured.run(1, 30);

      EXPECT_TRUE(same_bits(captured.state(), eager.state())) << shards << " shards";
      EXPECT_GT(captured.step->replayed(), 15);
      EXPECT_EQ(captured.step->why_not_captured(), "");
    });
  }
}

TEST(CapturedSteps, NeitherWaitNorCopyFromTheDevice) {
  Trained captured(&backend());
  captured.run(1, 20);
  const std::int64_t waits = far::traffic().waits;
  const std::int64_t copies = far::traffic().to_host;
  const std::int64_t replayed = captured.step->replayed();

  captured.run(21, 40);

  EXPECT_EQ(far::traffic().waits - waits, 0);
  EXPECT_EQ(far::traffic().to_host - copies, 0);
  EXPECT_EQ(captured.step->replayed() - replayed, 20);
}

TEST(CapturedSteps, FollowWhatIsFrozenClearedAndLoaded) {
  Trained eager(nullptr);
  Trained captured(&backend());
  for (Trained* trained : {&eager, &captured}) {
    trained->run(1, 12);
    trained->net->hidden->weight.set_requires_grad(false);
    trained->run(13, 24);
    trained->step->clear_totals();
    trained->net->hidden->weight.set_requires_grad(true);
    const StateDict numbers = trained->step->numbers();
    trained->run(25, 30);
    trained->step->set_numbers(numbers);
    trained->step->set_model_state({});
    trained->run(31, 40);
  }

  EXPECT_TRUE(same_bits(captured.state(), eager.state()));
  EXPECT_GT(captured.step->replayed(), 10);
}

// The trap: what a captured step reads of the host stays as it was.
TEST(CapturedSteps, ANumberOfTheHostThatChangesIsFound) {
  const auto error_of = [](const Net::Twist& twist) -> std::string {
    Trained captured(&backend(), twist);
    try {
      captured.run(1, 12);
    } catch (const TrainingError& error) {
      return error.what();
    }
    return "no error";
  };

  EXPECT_THAT(error_of([](Net& net, const at::Tensor& x, ForwardContext&) {
                net.number_of_host *= 1.5;
                return x * net.number_of_host;
              }),
              AllOf(HasSubstr("step 8 "), HasSubstr("differs"), HasSubstr("in parameter \""),
                    HasSubstr("\"execution\": \"eager\"")));
  RandomBits bits(3);
  EXPECT_THAT(error_of([&](Net&, const at::Tensor& x, ForwardContext&) {
                return x * static_cast<double>(bits.below(7) + 1);
              }),
              HasSubstr("in parameter \""));
  EXPECT_THAT(error_of([](Net& net, const at::Tensor& x, ForwardContext&) {
                net.named_buffers()["seen"].set_data(net.seen.clone());
                return x;
              }),
              HasSubstr("in buffer \"seen\""));
}

TEST(CapturedSteps, WhatCannotBeRecordedIsCarriedOutAndSaysWhy) {
  struct Reason {
    Net::Twist twist;
    const char* words;
  };
  const std::vector<Reason> reasons{{[](Net&, const at::Tensor& x, ForwardContext&) {
                                       return x.sum().item<double>() > 1e9 ? x.neg() : x;
                                     },
                                     "item()"},
                                    {[](Net&, const at::Tensor& x, ForwardContext&) {
                                       return x + x.detach().cpu().sum().to(x.device());
                                     },
                                     "a copy from the device to the host"},
                                    {[](Net&, const at::Tensor& x, ForwardContext&) {
                                       return x * at::ones({5}, at::kDouble).to(x.device());
                                     },
                                     "a copy from the host to the device"},
                                    {[](Net&, const at::Tensor& x, ForwardContext&) {
                                       return x + at::nonzero(x.detach()).size(0);
                                     },
                                     "aten::nonzero"},
                                    {[](Net&, const at::Tensor& x, ForwardContext&) {
                                       const TaskRandom random(draw_from_task());
                                       return x * at::rand_like(x);
                                     },
                                     "a seed that the host draws"},
                                    // What the host draws for a device without generators.
                                    {[](Net&, const at::Tensor& x, ForwardContext&) {
                                       return at::dropout(x, 0.3, /*train=*/true);
                                     },
                                     "a seed that the host draws"},
                                    // From the generator that the network has drawn from, too.
                                    {[](Net&, const at::Tensor& x, ForwardContext&) {
                                       return x * static_cast<double>(draw_from_task() % 7 + 1);
                                     },
                                     "a seed that the host draws"}};
  for (const Reason& reason : reasons) {
    Trained eager(nullptr, reason.twist);
    Trained captured(&backend(), reason.twist);
    eager.run(1, 12);
    captured.run(1, 12);

    EXPECT_THAT(captured.step->why_not_captured(), HasSubstr(reason.words));
    EXPECT_EQ(captured.step->replayed(), 0);
    EXPECT_TRUE(same_bits(captured.state(), eager.state())) << reason.words;
  }
}

TEST(CapturedSteps, OnADeviceThatDoesNotRecordAreCarriedOut) {
  class Plain final : public DeviceBackend {
    FoundDevices do_find() const override { return {.devices = {{}}}; }
    DeviceMemory do_memory(c10::Device) const override { return {}; }
    void do_reset_peak(c10::Device) const override {}
    void do_synchronize(c10::Device) const override {}
  };
  const Plain plain;
  Trained captured(&plain);

  captured.run(1, 6);

  EXPECT_EQ(captured.step->replayed(), 0);
  EXPECT_THAT(captured.step->why_not_captured(), HasSubstr("does not record"));
}

}  // namespace
}  // namespace treadle::testing
