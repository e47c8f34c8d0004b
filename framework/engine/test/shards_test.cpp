// A step in shards: the same numbers as in one piece, the same bits for any number of workers.
#include <treadle/engine/training_step.h>

#include "squared_error.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/logged_values.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/task_random.h>

namespace treadle::engine {
namespace {

constexpr std::int64_t kInputs = 6;
constexpr std::int64_t kClasses = 3;

/// Cross-entropy with a weight a row, which is how class weights arrive.
class RowWeightedCrossEntropy : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec&) const override {
    return {{"logits", {kClasses}}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor each =
        at::cross_entropy_loss(outputs[0], target.values(), {}, /*reduction: none=*/0);
    if (!target.weights().defined())
      return {each.sum(), {}};
    return {(each * target.weights()).sum(), target.weights().sum()};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kClasses, outputs[0].softmax(1)};
  }
};

/// Gradient descent with momentum: what it remembers would show a gradient that came twice.
class Momentum : public Optimizer {
  double do_learning_rate() const override { return 0.1; }
  std::vector<SlotSpec> do_slots() const override {
    return {{"momentum", SlotSpec::Kind::kPerElement, 0}};
  }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& run : view.runs()) {
      const at::Tensor momentum = 0.9 * run.slot(0) + run.gradients();
      run.set_slot(0, momentum);
      run.set_parameters(run.parameters() - view.learning_rate() * momentum);
    }
  }
};

/// Two layers; the rest is each test's.
class Net : public Model {
 public:
  using Between = std::function<at::Tensor(Net&, at::Tensor)>;

  explicit Net(Between between = nullptr, std::int64_t hidden = 10) : between_(std::move(between)) {
    first = register_module("first", torch::nn::Linear(kInputs, hidden));
    norm = register_module("norm", torch::nn::BatchNorm1d(hidden));
    second = register_module("second", torch::nn::Linear(hidden, kClasses));
    to(at::kDouble);
  }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    at::Tensor x = first(inputs[0]).tanh();
    context.log("rows", at::full({}, x.size(0)));
    if (between_)
      x = between_(*this, x);
    outputs[0] = second(x);
  }

  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear second{nullptr};
  at::Tensor drawn;

 private:
  Between between_;
};

using Nets = std::vector<std::shared_ptr<Net>>;

Nets make_nets(std::size_t count, const Net::Between& between = nullptr) {
  Nets nets;
  for (std::size_t i = 0; i < count; ++i) {
    // Every replica begins with other numbers, which it must give up.
    const TaskRandom random(7 + i);
    nets.push_back(std::make_shared<Net>(between));
  }
  return nets;
}

StepOptions options_for(const Nets& nets) {
  StepOptions options;
  for (std::size_t i = 1; i < nets.size(); ++i)
    options.replicas.push_back(nets[i].get());
  return options;
}

Batch batch_of(std::int64_t rows, std::uint64_t seed, bool weighted = false) {
  const at::Generator generator = make_generator(seed);
  Batch batch;
  batch.inputs = {at::randn({rows, kInputs}, generator, at::kDouble)};
  batch.targets = batch.original_targets = {
      at::randint(kClasses, {rows}, generator, at::TensorOptions(at::kLong))};
  if (weighted)
    batch.weights = at::rand({rows}, generator, at::kDouble);
  batch.rows = at::randint(1000, {rows}, generator, at::TensorOptions(at::kLong));
  return batch;
}

const ObjectiveOf<RowWeightedCrossEntropy> kLoss(class_target("y", {"a", "b", "c"}));
const Momentum kOptimizer;

/// Trains on ragged batches; what comes out: the parameters and the loss of each step.
std::vector<at::Tensor> train(const Nets& nets, int workers, bool weighted = false) {
  std::vector<at::Tensor> result;
  ThreadBudget budget(workers);
  budget.run([&] {
    TrainingStep step(*nets.front(), kLoss, kOptimizer, options_for(nets));
    std::uint64_t seed = 1;
    for (const std::int64_t rows : {24, 24, 17, 5, 3, 1, 2, 24, 13, 24}) {
      ASSERT_TRUE(
          step.run(batch_of(rows, seed, weighted), static_cast<std::int64_t>(seed), 0.1, seed));
      ++seed;
    }
    for (const at::Tensor& parameter : nets.front()->parameters()) {
      result.push_back(parameter.detach().clone());
    }
    result.push_back(at::full({}, step.totals().value().value(), at::kDouble));
    result.push_back(at::full({}, step.totals().weight(), at::kDouble));
  });
  return result;
}

double largest_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  }
  return largest;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

class Shards : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Shards, EqualOnePiece) {
  for (const bool weighted : {false, true}) {
    const auto whole = train(make_nets(1), 2, weighted);
    const auto cut = train(make_nets(GetParam()), 2, weighted);

    EXPECT_LT(largest_difference(whole, cut), 1e-12) << (weighted ? "weighted" : "not weighted");
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Shards, ::testing::Values(2, 3, 5, 8));

TEST(ShardedStep, GivesTheSameBitsForAnyNumberOfWorkers) {
  const Net::Between dropout = [](Net&, at::Tensor x) { return at::dropout(x, 0.5, true); };
  const auto expected = train(make_nets(4, dropout), 1);

  for (const int workers : {2, 3, 8}) {
    EXPECT_TRUE(same_bits(expected, train(make_nets(4, dropout), workers))) << workers;
  }
  EXPECT_FALSE(same_bits(expected, train(make_nets(4), 2))) << "dropout did nothing";
}

TEST(ShardedStep, GivesEachShardAStreamOfItsOwnAndTheFirstThatOfTheStep) {
  const Net::Between draw = [](Net& net, at::Tensor x) {
    net.drawn = at::rand({2}, at::kDouble);
    return x;
  };
  const Nets nets = make_nets(3, draw);
  const Nets alone = make_nets(1, draw);
  ThreadBudget budget(2);
  budget.run([&] {
    TrainingStep(*nets.front(), kLoss, kOptimizer, options_for(nets))
        .run(batch_of(9, 1), 1, 0.1, 42);
    TrainingStep(*alone.front(), kLoss, kOptimizer).run(batch_of(9, 1), 1, 0.1, 42);
  });

  EXPECT_TRUE(at::equal(nets[0]->drawn, alone[0]->drawn));
  EXPECT_FALSE(at::equal(nets[0]->drawn, nets[1]->drawn));
  EXPECT_FALSE(at::equal(nets[0]->drawn, nets[2]->drawn));
  EXPECT_FALSE(at::equal(nets[1]->drawn, nets[2]->drawn));
}

TEST(ShardedStep, NormalizesEachShardByItselfAndKeepsTheFirstOnesStatistics) {
  const Net::Between norm = [](Net& net, at::Tensor x) { return net.norm(x); };
  const Nets nets = make_nets(2, norm);
  const Nets first_half = make_nets(1, norm);
  const Batch batch = batch_of(16, 3);
  ThreadBudget budget(2);
  budget.run([&] {
    TrainingStep step(*nets.front(), kLoss, kOptimizer, options_for(nets));
    TrainingStep half(*first_half.front(), kLoss, kOptimizer);
    step.run(batch, 1, 0.1, 1);
    half.run(batch.slice(0, 8), 1, 0.1, 1);
    EXPECT_TRUE(at::equal(nets[0]->norm->running_mean, first_half[0]->norm->running_mean));
    EXPECT_FALSE(at::equal(nets[0]->norm->running_mean, nets[1]->norm->running_mean));

    nets[0]->norm->running_mean.fill_(0.25);
    step.run(batch, 2, 0, 1);
  });

  // The replica went on from the model's statistics, not from its own: 0.25 is in what both have
  // now.
  const at::Tensor mean = nets[1]->first(batch.inputs[0].slice(0, 8)).tanh().mean(0);
  EXPECT_LT((nets[1]->norm->running_mean - (0.9 * 0.25 + 0.1 * mean)).abs().max().item<double>(),
            1e-12);
}

TEST(ShardedStep, FollowsTheModelsModeAndItsFrozenParameters) {
  const Nets nets = make_nets(2);
  ThreadBudget budget(2);
  budget.run([&] {
    TrainingStep step(*nets.front(), kLoss, kOptimizer, options_for(nets));
    const at::Tensor before = nets[0]->first->weight.detach().clone();
    nets[0]->first->weight.set_requires_grad(false);
    nets[0]->norm->eval();

    step.run(batch_of(8, 1), 1, 0.1, 1);

    EXPECT_TRUE(at::equal(nets[0]->first->weight, before));
    EXPECT_FALSE(nets[1]->first->weight.requires_grad());
    EXPECT_TRUE(nets[1]->is_training());
    EXPECT_FALSE(nets[1]->norm->is_training());

    nets[0]->first->weight.set_requires_grad(true);
    nets[0]->norm->train();
    step.run(batch_of(8, 2), 2, 0.1, 1);

    EXPECT_FALSE(at::equal(nets[0]->first->weight, before));
    EXPECT_TRUE(nets[1]->norm->is_training());
  });
}

TEST(ShardedStep, ComesOutWithTheFirstShardsErrorAndCanGoOn) {
  for (const std::size_t broken : {0, 1, 2, 3}) {
    std::atomic<bool> fails{true};
    const Net* broken_net = nullptr;
    const Net::Between between = [&](Net& net, at::Tensor x) {
      if (fails && &net == broken_net)
        throw DataError("shard " + std::to_string(broken));
      return x;
    };
    const Nets nets = make_nets(4, between);
    const Nets untouched = make_nets(4);
    broken_net = nets[broken].get();
    ThreadBudget budget(3);
    budget.run([&] {
      TrainingStep step(*nets.front(), kLoss, kOptimizer, options_for(nets));
      try {
        step.run(batch_of(16, 1), 1, 0.1, 1);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const DataError& error) {
        EXPECT_EQ(std::string(error.what()), "shard " + std::to_string(broken));
      }
      fails = false;
      step.clear_totals();
      TrainingStep other(*untouched.front(), kLoss, kOptimizer, options_for(untouched));
      step.run(batch_of(16, 1), 1, 0.1, 1);
      other.run(batch_of(16, 1), 1, 0.1, 1);
      EXPECT_TRUE(at::equal(step.arena().parameters(), other.arena().parameters()))
          << "a failed step left something behind";
    });
  }
}

TEST(ShardedStep, AddsUpWhatItsShardsShow) {
  const auto rows_of = [](const TrainingStep& step) {
    const std::vector<MetricValue> means = step.logged_means();
    return means.empty() ? Number(0.0) : means.front().value;
  };
  const Nets nets = make_nets(2);
  const Nets resumed_nets = make_nets(2);
  ThreadBudget budget(2);
  budget.run([&] {
    TrainingStep step(*nets.front(), kLoss, kOptimizer, options_for(nets));
    TrainingStep resumed(*resumed_nets.front(), kLoss, kOptimizer, options_for(resumed_nets));
    step.run(batch_of(8, 1), 1, 0.1, 1);
    resumed.set_numbers(step.numbers());
    step.run(batch_of(1, 2), 2, 0.1, 1);
    resumed.run(batch_of(1, 2), 2, 0.1, 1);

    const double by_rows = (4 * 4 + 4 * 4 + 1 * 1) / 9.0;  // 1: of the one shard that had a row
    EXPECT_EQ(rows_of(step), by_rows);
    EXPECT_EQ(rows_of(resumed), by_rows);
    step.clear_totals();
    EXPECT_EQ(rows_of(step), 0);
  });
}

TEST(ShardedStep, RefusesAReplicaOfAnotherStructure) {
  Net replica(nullptr, 11);
  Net net(nullptr, 10);
  StepOptions options;
  options.replicas = {&replica};

  try {
    TrainingStep(net, kLoss, kOptimizer, options);
    FAIL() << "it was accepted";
  } catch (const TrainingError& error) {
    EXPECT_STREQ(error.what(),
                 "a replica of the model differs from it: where the model has parameter "
                 "\"first.weight\" [10, 6], the replica has \"first.weight\" [11, 6]; a model "
                 "provider must create the same structure every time");
  }
}

}  // namespace
}  // namespace treadle::engine
