// The shards of a step in several processes, here threads: the bits of one process.
#include <treadle/engine/training_step.h>

#include "squared_error.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/logged_values.h>
#include <treadle/engine/shard_group.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/distributed/thread_communicator.h>

namespace treadle::engine {
namespace shared_steps {
namespace {

using ::testing::AllOf;
using testing::at_ranks;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::int64_t kInputs = 5;

/// Momentum, which would show a gradient that came twice.
class Momentum : public Optimizer {
  double do_learning_rate() const override { return 0.05; }
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

/// Dropout, batch normalization, a state that goes on, a logged value and a loss of its own: all
/// that shards tell each other beside gradients.
class Net : public Model {
 public:
  explicit Net(std::int64_t hidden, at::ScalarType dtype) {
    first = register_module("first", torch::nn::Linear(kInputs, hidden));
    norm = register_module("norm", torch::nn::BatchNorm1d(hidden));
    second = register_module("second", torch::nn::Linear(hidden, 2));
    to(dtype);
  }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    if (throws_at == inputs[0].size(0))
      throw DataError("a row is wrong");
    at::Tensor x = at::dropout(norm(first(inputs[0]).tanh()), 0.3, is_training());
    context.log("size", x.abs().mean());
    if (adds_loss)
      context.add_loss("activity", 0.01 * x.pow(2).sum());
    at::Tensor before =
        context.state().has_tensor("mean") ? context.state().tensor("mean") : x.new_zeros({});
    context.state().put("mean", x.detach().mean() + 0.5 * before);
    outputs[0] = second(x) + 0.1 * before;
  }

  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear second{nullptr};
  bool adds_loss = false;
  std::int64_t throws_at = -1;
};

/// Equal in all processes.
struct Trained {
  at::Tensor parameters;
  std::vector<at::Tensor> buffers;
  double loss = 0;
  double skipped = 0;
  std::vector<double> logged;
  StateDict numbers;
  StateDict model_state;
};

struct Setting {
  std::size_t shards = 1;
  std::int64_t hidden = 8;
  at::ScalarType dtype = at::kFloat;
  bool adds_loss = false;
  /// The loss has two terms, and rows count by weights.
  bool has_terms = false;
  /// Each process has the rows of its own shards alone.
  bool own_rows = false;
};

Batch batch_of(std::int64_t rows, std::uint64_t seed, at::ScalarType dtype,
               bool is_weighted = false) {
  const at::Generator generator = make_generator(seed);
  Batch batch;
  batch.inputs = {at::randn({rows, kInputs}, generator, at::kDouble).to(dtype)};
  batch.targets = batch.original_targets = {at::randn({rows, 2}, generator, at::kDouble).to(dtype)};
  batch.rows = at::full({rows}, 0, at::kLong);
  if (is_weighted)
    batch.weights = at::rand({rows}, generator, at::kDouble).to(dtype);
  return batch;
}

/// Those of the shards that a process has.
StepRows own_rows(const Batch& batch, const Setting& setting, const ShardGroup* group) {
  const ShardRange own = group != nullptr ? group->own() : ShardRange{0, setting.shards};
  StepRows rows{batch.size()};
  for (std::size_t shard = own.first; shard < own.last; ++shard) {
    const std::int64_t begin = StepRows::begin_of(shard, setting.shards, batch.size());
    const std::int64_t end = StepRows::begin_of(shard + 1, setting.shards, batch.size());
    rows.shards.push_back(batch.slice(begin, end - begin));
  }
  return rows;
}

/// Trains on ragged batches; of each process the shards that it has.
Trained train(const Setting& setting, ShardGroup* group) {
  const std::size_t here = group == nullptr ? setting.shards : group->own().size();
  std::vector<std::shared_ptr<Net>> nets;
  StepOptions options;
  options.group = group;
  options.clipping.norm = 0.5;
  for (std::size_t i = 0; i < here; ++i) {
    const TaskRandom random(i == 0 ? 7 : 8 + i);
    nets.push_back(std::make_shared<Net>(setting.hidden, setting.dtype));
    nets.back()->adds_loss = setting.adds_loss;
    nets.back()->train();
    if (i > 0)
      options.replicas.push_back(nets.back().get());
  }
  const SquaredError loss;
  const TargetSpec target = number_target("y", 2);
  std::vector<Objective::Term> terms{{.loss = &loss}};
  if (setting.has_terms)
    terms.push_back({.loss = &loss, .factor = 0.3, .name = "again"});
  const Objective objective(terms, std::span(&target, 1));
  const Momentum optimizer;
  TrainingStep step(*nets.front(), objective, optimizer, options);
  std::int64_t number = 1;
  for (const std::int64_t rows : {24, 17, 30, 24}) {
    const auto seed = static_cast<std::uint64_t>(number);
    const Batch batch = batch_of(rows, seed, setting.dtype, setting.has_terms);
    if (setting.own_rows) {
      step.run(own_rows(batch, setting, group), number++, 0.05, seed);
    } else {
      step.run(batch, number++, 0.05, seed);
    }
  }
  Trained trained;
  trained.parameters = step.arena().parameters().clone();
  for (const at::Tensor& buffer : nets.front()->buffers())
    trained.buffers.push_back(buffer.clone());
  trained.loss = step.totals().value().value();
  trained.skipped = static_cast<double>(step.record().skipped);
  for (const MetricValue& value : step.logged_means())
    trained.logged.push_back(value.value.value());
  trained.numbers = step.numbers();
  trained.model_state = step.model_state();
  return trained;
}

bool same_bits(const StateDict& a, const StateDict& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && at::equal(x.second, y.second);
  };
  return a.values() == b.values() &&
         std::equal(a.tensors().begin(), a.tensors().end(), b.tensors().begin(), b.tensors().end(),
                    same) &&
         std::equal(a.parts().begin(), a.parts().end(), b.parts().begin(), b.parts().end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && same_bits(x.second, y.second);
                    });
}

void expect_same(const Trained& one, const Trained& other) {
  EXPECT_TRUE(at::equal(one.parameters, other.parameters));
  ASSERT_EQ(one.buffers.size(), other.buffers.size());
  for (std::size_t i = 0; i < one.buffers.size(); ++i)
    EXPECT_TRUE(at::equal(one.buffers[i], other.buffers[i])) << "buffer " << i;
  EXPECT_EQ(one.loss, other.loss);
  EXPECT_EQ(one.skipped, other.skipped);
  EXPECT_EQ(one.logged, other.logged);
  EXPECT_TRUE(same_bits(one.numbers, other.numbers));
  EXPECT_TRUE(same_bits(one.model_state, other.model_state));
}

class SharedSteps : public ::testing::TestWithParam<std::tuple<std::size_t, std::int64_t>> {};

TEST_P(SharedSteps, GiveTheBitsOfOneProcess) {
  const auto [shards, processes] = GetParam();
  // The second one's gradients are sent in slices.
  for (const Setting& setting :
       {Setting{shards, 8, at::kFloat, true}, Setting{shards, 3001, at::kFloat, false},
        Setting{shards, 1501, at::kDouble, false}, Setting{shards, 9, at::kFloat, true, true, true},
        Setting{shards, 10, at::kFloat, false, true, true},
        Setting{shards, 11, at::kFloat, false, false, true}}) {
    SCOPED_TRACE(setting.hidden);
    ThreadBudget budget(8);
    Trained alone;
    budget.run([&] { alone = train(setting, nullptr); });
    std::mutex mutex;
    const auto errors = at_ranks(processes, [&](Communicator& communicator) {
      ShardGroup group(communicator, setting.shards);
      Trained shared;
      budget.run([&] { shared = train(setting, &group); });
      const std::lock_guard lock(mutex);
      expect_same(alone, shared);
    });
    EXPECT_THAT(errors, Each(""));
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, SharedSteps,
                         ::testing::Values(std::tuple(2, 1), std::tuple(2, 2), std::tuple(3, 2),
                                           std::tuple(4, 2), std::tuple(4, 3), std::tuple(4, 4),
                                           std::tuple(7, 3), std::tuple(8, 4)));

// A group sends 2 (1 - 1/W) P bytes of gradients, and a little.
TEST(SharedStep, SendsTwiceItsShareOfTheGradients) {
  for (const std::int64_t processes : {2, 4}) {
    std::mutex mutex;
    const auto errors = at_ranks(processes, [&](Communicator& communicator) {
      ShardGroup group(communicator, 4);
      ThreadBudget budget(1);
      const Net net(20'001, at::kFloat);
      train({4, 20'001, at::kFloat, false}, &group);
      double bytes = 0;
      for (const at::Tensor& parameter : net.parameters())
        bytes += static_cast<double>(parameter.nbytes());
      double buffers = 0;
      for (const at::Tensor& buffer : net.buffers())
        buffers += static_cast<double>(buffer.nbytes());
      const double share = 1 - 1 / static_cast<double>(processes);
      const double others = static_cast<double>(processes - 1);
      const std::lock_guard lock(mutex);
      EXPECT_LE(static_cast<double>(group.bytes_sent()),
                4 * (share * 2 * bytes + 64'000 + (group.rank() == 0 ? others * buffers : 0)));
    });
    EXPECT_THAT(errors, Each(""));
  }
}

TEST(SharedStep, EndsEverywhereWithTheFirstShardsError) {
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    ShardGroup group(communicator, 3);
    const TaskRandom random(7);
    Net net(8, at::kFloat);
    // 10 rows: the last shard has 4.
    net.throws_at = 4;
    const ObjectiveOf<SquaredError> loss;
    const Momentum optimizer;
    StepOptions options;
    options.group = &group;
    TrainingStep step(net, loss, optimizer, options);
    try {
      step.run(batch_of(10, 1, at::kFloat), 1, 0.1, 1);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a row is wrong"));
      if (group.rank() != 2) {
        EXPECT_THAT(error.what(), HasSubstr("rank 2"));
      }
    }
    net.throws_at = -1;
    EXPECT_TRUE(step.run(batch_of(10, 1, at::kFloat), 1, 0.1, 1)) << "it can go on";
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(SharedStep, EndsEverywhereWhereOneProcessHasNoRows) {
  const Setting setting{3, 8, at::kFloat, false, false, true};
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    ShardGroup group(communicator, 3);
    const TaskRandom random(7);
    Net net(8, at::kFloat);
    const ObjectiveOf<SquaredError> loss;
    const Momentum optimizer;
    StepOptions options;
    options.group = &group;
    TrainingStep step(net, loss, optimizer, options);
    StepRows rows = own_rows(batch_of(9, 1, at::kFloat), setting, &group);
    if (group.rank() == 1)
      rows = {0, {}, std::make_exception_ptr(DataError("cat.png: cannot be decoded"))};
    step.run(rows, 1, 0.1, 1);
  });
  EXPECT_THAT(errors, Each(HasSubstr("cat.png: cannot be decoded")));
}

TEST(SharedStep, AgreesOnAStopOfAnyProcessAndOnTheClockOfTheFirst) {
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    ShardGroup group(communicator, 2);
    const bool is_first = group.rank() == 0;
    const TaskRandom random(7);
    Net net(8, at::kFloat);
    const ObjectiveOf<SquaredError> loss;
    const Momentum optimizer;
    StepOptions options;
    options.group = &group;
    TrainingStep step(net, loss, optimizer, options);
    const auto after = [&](const ShardGroup::Signals& wishes, std::int64_t number) {
      group.wish(wishes);
      step.run(batch_of(8, 1, at::kFloat), number, 0.1, 1);
      return group.agreed();
    };
    EXPECT_FALSE(after({}, 1).stop);
    EXPECT_TRUE(after({.stop = !is_first}, 2).stop);
    EXPECT_FALSE(after({.save = !is_first}, 3).save);
    EXPECT_TRUE(after({.save = is_first}, 4).save);
    EXPECT_EQ(after({.seconds = is_first ? 3.5 : 7.0}, 5).seconds, 3.5);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(SharedStep, RefusesProcessesWithOtherParameters) {
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    ShardGroup group(communicator, 3);
    const TaskRandom random(group.rank() == 1 ? 8 : 7);
    Net net(8, at::kFloat);
    const ObjectiveOf<SquaredError> loss;
    const Momentum optimizer;
    StepOptions options;
    options.group = &group;
    TrainingStep step(net, loss, optimizer, options);
    step.run(batch_of(8, 1, at::kFloat), 1, 0.1, 1);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("different parameters in step 1"),
                                 HasSubstr("those of rank 1"))));
}

TEST(SharedStep, RefusesProcessesAtOtherSteps) {
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    ShardGroup group(communicator, 2);
    const TaskRandom random(7);
    Net net(8, at::kFloat);
    const ObjectiveOf<SquaredError> loss;
    const Momentum optimizer;
    StepOptions options;
    options.group = &group;
    TrainingStep step(net, loss, optimizer, options);
    step.run(batch_of(8, 1, at::kFloat), 1 + group.rank(), 0.1, 1);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("at step 1"), HasSubstr("at step 2"),
                                 HasSubstr("from one checkpoint"))));
}

TEST(ShardGroup, RefusesMoreProcessesThanShards) {
  const auto errors = at_ranks(3, [&](Communicator& communicator) { ShardGroup(communicator, 2); });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("3 processes"), HasSubstr("2 shards"),
                                 HasSubstr("resources.shards"))));
}

}  // namespace
}  // namespace shared_steps
}  // namespace treadle::engine
