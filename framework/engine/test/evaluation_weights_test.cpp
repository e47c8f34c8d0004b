// An optimizer that evaluates other weights than it steps with.
#include <cmath>

#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/training/optimizer_abilities.h>
#include <treadle/testing/support/whole_training.h>

namespace treadle::testing {
namespace {

/// Gradient descent.
class Descent : public Optimizer {
  double do_learning_rate() const override { return 0.05; }
  std::vector<SlotSpec> do_slots() const override { return {}; }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& run : view.runs())
      run.set_parameters(run.parameters() - view.learning_rate() * run.gradients());
  }
};

/// The same, of which half of each weight is evaluated.
class Halving final : public Descent, public EvaluationWeights {
  at::Tensor do_evaluation_weights(const at::Tensor& parameters,
                                   const OptimizerSlots&) const override {
    return parameters * 0.5;
  }
  void* do_ask(std::string_view interface_id) override {
    return interface_id == EvaluationWeights::kInterface ? static_cast<EvaluationWeights*>(this)
                                                         : nullptr;
  }
};

const Descent kDescent;
const Halving kHalving;

std::unique_ptr<Rehearsal> halving(Rehearsed rehearsed = {}, Rehearsal::Callbacks callbacks = {}) {
  auto rehearsal = std::make_unique<Rehearsal>(rehearsed, std::move(callbacks));
  rehearsal->setup().optimizer = &kHalving;
  return rehearsal;
}

template <typename Callback>
Rehearsal::Callbacks only() {
  Rehearsal::Callbacks callbacks;
  callbacks.push_back(std::make_unique<Callback>());
  return callbacks;
}

void expect_half(const StateDict& got, const StateDict& of) {
  for (const auto& [name, tensor] : of.tensors()) {
    const at::Tensor expected = tensor.is_floating_point() ? tensor * 0.5 : tensor;
    EXPECT_TRUE(got.tensor(name).equal(expected)) << name;
  }
}

const Duration kEachStep{1, Duration::Unit::kSteps};

TEST(EvaluationWeights, AreEvaluatedAndEndedWith) {
  const Whole whole(halving({.checkpoint_every = kEachStep}));

  expect_half(whole.rehearsal->weights(), whole.context.checkpoints().back().state.part("model"));
  EXPECT_EQ(whole.rehearsal->validate().loss, whole.context.epochs().back().val_loss);
  EXPECT_TRUE(whole.result.has_average);
}

TEST(EvaluationWeights, LeaveTheStepsAlone) {
  const Whole whole(halving({.checkpoint_every = kEachStep}));
  auto plain = std::make_unique<Rehearsal>(Rehearsed{.checkpoint_every = kEachStep});
  plain->setup().optimizer = &kDescent;
  const Whole other(std::move(plain));

  ASSERT_EQ(whole.context.checkpoints().size(), other.context.checkpoints().size());
  for (std::size_t i = 0; i < whole.context.checkpoints().size(); ++i) {
    EXPECT_TRUE(same_bits(whole.context.checkpoints()[i].state.part("model"),
                          other.context.checkpoints()[i].state.part("model")));
  }
  EXPECT_FALSE(other.result.has_average);
}

/// Keeps the weights of the second epoch.
class KeepsTheSecond final : public TrainingCallback {
  void do_begin(TrainingControl& control) override { control.end_with_kept_weights("loss"); }
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override {
    if (epoch.epoch == 2)
      control.keep_weights();
  }
};

TEST(EvaluationWeights, AreWhatTheBestEpochKeeps) {
  const Whole whole(halving({.checkpoint_every = kEachStep}, only<KeepsTheSecond>()));

  const auto second = static_cast<std::size_t>(2 * whole.rehearsal->steps_per_epoch() - 1);
  expect_half(whole.rehearsal->weights(), whole.context.checkpoints()[second].state.part("model"));
  EXPECT_TRUE(whole.result.has_average);
  EXPECT_EQ(whole.result.best_epoch, 2);
}

TEST(EvaluationWeights, StopsAfterEveryStepChangeNothing) {
  for (const Rehearsed& rehearsed : situations())
    expect_stops_after_every_step_change_nothing([&] { return halving(rehearsed); });
}

class Averages final : public TrainingCallback {
  void do_begin(TrainingControl& control) override {
    control.average_weights({.start = Duration(0, Duration::Unit::kSteps), .decay = 0.9});
  }
};

TEST(EvaluationWeights, LeaveNoRoomForAnotherAverage) {
  const auto rehearsal = halving({}, only<Averages>());
  RecordingContext context;
  try {
    rehearsal->train(context);
    FAIL() << "two averages";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("the optimizer evaluates an average of its own"));
  }
}

TEST(EvaluationWeights, AreThoseOfTheGroupsThatHaveThem) {
  auto rehearsal = std::make_unique<Rehearsal>(Rehearsed{.checkpoint_every = kEachStep});
  rehearsal->setup().optimizer = &kDescent;
  rehearsal->setup().groups = {{&kHalving, {"output.weight"}}};
  const Whole whole(std::move(rehearsal));

  const StateDict& own = whole.context.checkpoints().back().state.part("model");
  const StateDict ended = whole.rehearsal->weights();
  EXPECT_TRUE(ended.tensor("output.weight").equal(own.tensor("output.weight") * 0.5));
  EXPECT_TRUE(ended.tensor("hidden.weight").equal(own.tensor("hidden.weight")));
}

/// Normalizes what its first layer gives.
class NormalizedModel final : public Model {
 public:
  NormalizedModel() {
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

TEST(EvaluationWeights, HaveStatisticsOfTheirOwn) {
  auto rehearsal = halving();
  NormalizedModel model;
  rehearsal->setup().model = &model;
  const Whole whole(std::move(rehearsal));

  const at::NoGradGuard no_gradients;
  at::Tensor sum = at::zeros({3}, at::kDouble);
  const auto stream = whole.rehearsal->training().epoch(whole.rehearsal->epochs() - 1);
  for (Batch batch; stream->next(batch);)
    sum += model.hidden->forward(batch.inputs[0]).mean(0);
  const at::Tensor expected = sum / static_cast<double>(whole.rehearsal->steps_per_epoch());
  EXPECT_LT((model.norm->running_mean - expected).abs().max().item<double>(), 1e-13);
  EXPECT_EQ(whole.rehearsal->validate().loss, whole.context.epochs().back().val_loss);
}

}  // namespace
}  // namespace treadle::testing
