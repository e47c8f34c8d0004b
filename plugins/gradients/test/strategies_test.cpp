#include "strategies.h"

#include <gtest/gtest.h>

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/model/recomputed.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/expect_problem.h>
#include <treadle/testing/training/training_fakes.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

/// Half the squared error, weighted.
class SquaredError : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec&) const override { return {{"y", {2}}}; }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor each = (outputs[0] - target.values()).pow(2).sum(1) / 2;
    if (!target.weights().defined())
      return {each.sum(), {}};
    return {(each * target.weights()).sum(), target.weights().sum()};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

/// A running sum over time with a weight: remembers within a row.
class Recurrent : public Model {
 public:
  Recurrent() {
    const TaskRandom random(3);
    cell = register_module("cell", torch::nn::Linear(2, 2));
    to(at::kDouble);
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    most_rows = std::max(most_rows, inputs[0].size(0));
    at::Tensor state = at::zeros({inputs[0].size(0), 2}, at::kDouble);
    for (std::int64_t time = 0; time < inputs[0].size(1); ++time) {
      if (context.truncates_bptt())
        state = state.detach();
      state = cell(state + inputs[0].select(1, time)).tanh();
    }
    outputs[0] = state;
  }
  torch::nn::Linear cell{nullptr};
  std::int64_t most_rows = 0;
};

/// A running sum over batches, of each row by itself.
class Remembering : public Model {
 public:
  Remembering() {
    const TaskRandom random(3);
    cell = register_module("cell", torch::nn::Linear(2, 2));
    to(at::kDouble);
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    const at::Tensor before = context.state().has_tensor("state")
                                  ? context.state().tensor("state")
                                  : at::zeros({inputs[0].size(0), 2}, at::kDouble);
    outputs[0] = cell(before + inputs[0].select(1, 0)).tanh();
    context.state().put("state", outputs[0]);
  }
  torch::nn::Linear cell{nullptr};
};

Batch sequences(std::int64_t rows, bool weighted) {
  const at::Generator generator = make_generator(5);
  Batch batch;
  batch.inputs = {at::randn({rows, 4, 2}, generator, at::kDouble)};
  batch.targets = batch.original_targets = {at::randn({rows, 2}, generator, at::kDouble)};
  if (weighted)
    batch.weights = at::rand({rows}, generator, at::kDouble);
  batch.rows = at::zeros({rows}, at::kLong);
  return batch;
}

struct Gradients {
  at::Tensor weight;
  double sum = 0;
  double count = 0;
  std::int64_t most_rows = 0;
};

Gradients gradients_of(const GradientStrategy& strategy, const Batch& batch) {
  Recurrent model;
  const SquaredError loss;
  const Objective objective = testing::objective_of(loss, number_target("y", 2));
  ForwardContext context;
  const BatchLoss batch_loss = strategy.add_gradients({&model, &objective}, batch, context);
  const BatchLoss::Term& term = batch_loss.terms.front();
  return {model.cell->weight.grad().clone(), term.sum.item<double>(),
          term.weight.defined() ? term.weight.item<double>() : term.count, model.most_rows};
}

Gradients gradients_of(const std::string& name, const Json& parameters, const Batch& batch) {
  return gradients_of(*plugin().make<GradientStrategy>(name, parameters), batch);
}

void expect_close(const Gradients& a, const Gradients& b) {
  EXPECT_LT((a.weight - b.weight).abs().max().item<double>(), 1e-13);
  EXPECT_NEAR(a.sum, b.sum, 1e-12);
  EXPECT_NEAR(a.count, b.count, 1e-13);
}

TEST(Backprop, EqualsLibtorch) {
  const Batch batch = sequences(5, false);
  Recurrent model;
  Outputs outputs(1);
  ForwardContext context;
  model.forward(batch.inputs, outputs, context);
  ((outputs[0] - batch.targets[0]).pow(2).sum() / 2).backward();

  const Gradients gradients = gradients_of("backprop", {}, batch);

  EXPECT_TRUE(at::equal(gradients.weight, model.cell->weight.grad()));
}

TEST(Accumulate, EqualsTheWholeBatchInTheMemoryOfAPart) {
  for (const bool weighted : {false, true}) {
    for (const std::int64_t rows : {12, 7, 2, 1}) {
      const Batch batch = sequences(rows, weighted);
      const Gradients whole = gradients_of("backprop", {}, batch);
      for (const std::int64_t parts : {1, 3, 12, 50}) {
        const Gradients cut = gradients_of("accumulate", {{"micro_batches", parts}}, batch);
        expect_close(cut, whole);
        EXPECT_EQ(cut.most_rows, (rows + std::min(rows, parts) - 1) / std::min(rows, parts));
      }
    }
  }
}

TEST(Accumulate, CarriesTheStateOfEachRowToTheNextBatch) {
  const SquaredError loss;
  const Objective objective = testing::objective_of(loss, number_target("y", 2));
  const auto gradient_after_two_batches = [&](const GradientStrategy& strategy) {
    Remembering model;
    ForwardContext context;
    for (const std::int64_t columns : {0, 1}) {
      Batch batch = sequences(7, false);
      batch.inputs[0] = batch.inputs[0].slice(1, columns);
      strategy.add_gradients({&model, &objective}, batch, context);
    }
    return model.cell->weight.grad().clone();
  };
  const at::Tensor whole =
      gradient_after_two_batches(*plugin().make<GradientStrategy>("backprop", {}));

  const at::Tensor cut = gradient_after_two_batches(
      *plugin().make<GradientStrategy>("accumulate", {{"micro_batches", 3}}));

  EXPECT_LT((cut - whole).abs().max().item<double>(), 1e-13);
}

TEST(Accumulate, RefusesALossOverWholeBatchesAlsoWithoutADocument) {
  class OfWholeBatches final : public SquaredError {
    bool do_is_additive() const override { return false; }
  };
  Recurrent model;
  const OfWholeBatches loss;
  const Objective objective = testing::objective_of(loss, number_target("y", 2));
  ForwardContext context;
  const auto strategy = plugin().make<GradientStrategy>("accumulate", {{"micro_batches", 2}});
  try {
    strategy->add_gradients({&model, &objective}, sequences(4, false), context);
    FAIL() << "it was accepted";
  } catch (const UsageError& error) {
    EXPECT_TRUE(testing::tells(error.what(), "", {"whole batches", "training.gradients"}));
  }
}

TEST(TruncatedBptt, ReachesBackOneStepOfTime) {
  const Batch batch = sequences(5, false);
  // By hand: everything before the last step is a number.
  Recurrent model;
  at::Tensor state = at::zeros({5, 2}, at::kDouble);
  for (std::int64_t time = 0; time < 4; ++time)
    state = model.cell(state.detach() + batch.inputs[0].select(1, time)).tanh();
  ((state - batch.targets[0]).pow(2).sum() / 2).backward();

  const Gradients one_step = gradients_of("truncated_bptt", {}, batch);

  EXPECT_LT((one_step.weight - model.cell->weight.grad()).abs().max().item<double>(), 1e-15);
  EXPECT_FALSE(at::equal(one_step.weight, gradients_of("backprop", {}, batch).weight));
}

// Backward runs the steps again, when the strategy has long returned from the forward.
TEST(TruncatedBptt, HoldsInWhatIsComputedAgain) {
  class Recomputed final : public Recurrent {
   public:
    void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
      const auto again = [this, of_forward =
                                    context.part("again")](const std::vector<at::Tensor>& given) {
        ForwardContext own = of_forward;
        Outputs within(1);
        Recurrent::forward(given, within, own);
        return within;
      };
      outputs = recomputed(*this, again, {inputs[0]});
    }
  };
  const Batch batch = sequences(5, false);
  const SquaredError loss;
  const Objective objective = testing::objective_of(loss, number_target("y", 2));
  Recomputed model;
  ForwardContext context;

  plugin()
      .make<GradientStrategy>("truncated_bptt", {})
      ->add_gradients({&model, &objective}, batch, context);

  EXPECT_TRUE(
      at::equal(model.cell->weight.grad(), gradients_of("truncated_bptt", {}, batch).weight));
}

TEST(TruncatedBptt, EndsWithTheCall) {
  const Batch batch = sequences(5, false);
  const SquaredError loss;
  const Objective objective = testing::objective_of(loss, number_target("y", 2));
  Recurrent model;
  ForwardContext context;
  plugin()
      .make<GradientStrategy>("truncated_bptt", {})
      ->add_gradients({&model, &objective}, batch, context);
  model.zero_grad();

  plugin()
      .make<GradientStrategy>("backprop", {})
      ->add_gradients({&model, &objective}, batch, context);

  EXPECT_TRUE(at::equal(model.cell->weight.grad(), gradients_of("backprop", {}, batch).weight));
}

TEST(Strategies, DeclareAndPassOnWhatTheInnerOneLogs) {
  PluginRegistry registry;
  registry.add<GradientStrategy>(
      "counts_rows", [](const Config&, const ComponentContext&) -> std::unique_ptr<Component> {
        return std::make_unique<CountsRows>();
      });
  const Json inner = {{"use", "counts_rows"}};
  const gradients::TruncatedBptt truncated(Config(Json{{"inner", inner}}), {&registry});
  const gradients::Accumulation thirds(Config(Json{{"micro_batches", 3}, {"inner", inner}}),
                                       {&registry});
  const SquaredError loss;
  const Objective objective = testing::objective_of(loss, number_target("y", 2));
  const std::pair<const GradientStrategy*, double> cases[] = {{&truncated, 9}, {&thirds, 3}};
  for (const auto& [strategy, rows] : cases) {
    Recurrent model;
    LoggedValues logged;
    ForwardContext context;
    context.set_log(&logged);

    strategy->add_gradients({&model, &objective}, sequences(9, false), context);

    EXPECT_EQ(strategy->log_names(), std::vector<std::string>{"rows"});
    ASSERT_EQ(logged.means().size(), 1U);
    EXPECT_EQ(logged.means()[0].value, rows);
  }
}

TEST(Strategies, MayHoldEachOther) {
  const Batch batch = sequences(9, true);
  const Gradients one_step = gradients_of("truncated_bptt", {}, batch);

  expect_close(gradients_of("truncated_bptt",
                            {{"inner", {{"use", "accumulate"}, {"micro_batches", 4}}}}, batch),
               one_step);
  expect_close(
      gradients_of("accumulate", {{"micro_batches", 2}, {"inner", "truncated_bptt"}}, batch),
      one_step);
}

}  // namespace
}  // namespace treadle::testing
