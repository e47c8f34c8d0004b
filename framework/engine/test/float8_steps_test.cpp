// fp8-delayed: the scales of a step with shards.
#include <treadle/engine/training_step.h>

#include "squared_error.h"

#include <limits>
#include <memory>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/core/components/module_state.h>
#include <treadle/core/model/linear.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/task_random.h>

namespace treadle::engine {
namespace {

/// One product.
class OneLinear final : public Model {
 public:
  OneLinear() {
    const TaskRandom random(3);
    weight = register_parameter("weight", at::randn({1, 4}));
    prepare_for(precision_named("fp8-delayed"));
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = linear_in_precision(inputs[0], weight, {});
  }
  double scale(Float8Operand operand) const {
    return float8_scales()->scale(operand, 0).item<double>();
  }
  at::Tensor weight;
};

class SlowDescent final : public Optimizer {
  double do_learning_rate() const override { return 0.01; }
  std::vector<SlotSpec> do_slots() const override { return {}; }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& run : view.runs())
      run.set_parameters(run.parameters() - 0.01 * run.gradients());
  }
};

/// The largest numbers are in the last shard of three.
Batch growing_batch(std::int64_t rows, double size = 1) {
  Batch batch;
  batch.inputs = {(at::arange(rows * 4).view({rows, 4}) * size).to(at::kFloat)};
  batch.targets = batch.original_targets = {at::full({rows, 1}, -1.0F)};
  batch.rows = at::arange(rows);
  return batch;
}

struct Trained {
  std::vector<std::shared_ptr<OneLinear>> models;
  StateDict state;
};

Trained train_delayed(std::size_t shards, int workers, const std::vector<Batch>& batches) {
  static const ObjectiveOf<SquaredError> loss(number_target("y"));
  static const SlowDescent optimizer;
  Trained trained;
  StepOptions options;
  options.precision = precision_named("fp8-delayed");
  for (std::size_t i = 0; i < shards; ++i)
    trained.models.push_back(std::make_shared<OneLinear>());
  for (std::size_t i = 1; i < shards; ++i)
    options.replicas.push_back(trained.models[i].get());
  ThreadBudget budget(workers);
  budget.run([&] {
    TrainingStep step(*trained.models.front(), loss, optimizer, options);
    for (std::size_t i = 0; i < batches.size(); ++i)
      step.run(batches[i], static_cast<std::int64_t>(i) + 1, 0.1, i);
  });
  trained.state = module_state(*trained.models.front()).snapshot();
  return trained;
}

TEST(Float8Steps, ScaleByTheValuesOfAllShards) {
  for (const std::size_t shards : {1, 3, 5}) {
    SCOPED_TRACE(shards);
    const Batch batch = growing_batch(3);  // fewer rows than shards, too
    const OneLinear untrained;
    const Trained trained = train_delayed(shards, 2, {batch});
    const OneLinear& model = *trained.models.front();

    EXPECT_FLOAT_EQ(model.scale(Float8Operand::kInput), 448.0F / 11);
    EXPECT_FLOAT_EQ(model.scale(Float8Operand::kWeight),
                    448.0F / untrained.weight.abs().max().item<float>());
    EXPECT_GT(model.scale(Float8Operand::kGradient), 0);
    EXPECT_LT(model.scale(Float8Operand::kGradient), std::numeric_limits<float>::max());
  }
}

TEST(Float8Steps, GiveReplicasTheScalesOfTheModel) {
  // In a step of one row most models do not run; they have the scales of the steps before.
  const std::vector<Batch> batches{growing_batch(9), growing_batch(9, 0.5), growing_batch(1)};
  const Trained trained = train_delayed(3, 2, batches);
  for (const auto& replica : trained.models)
    EXPECT_FLOAT_EQ(replica->scale(Float8Operand::kInput), 448.0F / 35);
}

TEST(Float8Steps, HaveTheSameBitsForAnyNumberOfWorkers) {
  const std::vector<Batch> batches{growing_batch(9), growing_batch(7, 0.1), growing_batch(2),
                                   growing_batch(9, 3)};
  const StateDict one = train_delayed(3, 1, batches).state;
  const StateDict four = train_delayed(3, 4, batches).state;
  for (const auto& [name, tensor] : one.tensors())
    EXPECT_TRUE(at::equal(four.tensor(name), tensor)) << name;
}

TEST(Float8Steps, KeepTheirHistoryWhereAStepIsNotFinite) {
  const Batch bad = growing_batch(6, std::numeric_limits<float>::infinity());
  for (const std::size_t shards : {1, 3}) {
    const StateDict before = train_delayed(shards, 2, {growing_batch(6)}).state;
    const StateDict after = train_delayed(shards, 2, {growing_batch(6), bad}).state;
    EXPECT_TRUE(at::equal(after.tensor("weight"), before.tensor("weight"))) << "it is skipped";
    EXPECT_FLOAT_EQ(after.tensor("float8_scales.scale")[0][0].item<float>(), 448.0F / 23);
  }
}

}  // namespace
}  // namespace treadle::engine
