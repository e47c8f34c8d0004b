#include <treadle/engine/dropout_mode.h>

#include <memory>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <treadle/core/data/batch_list.h>
#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/model.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/task_random.h>

#include "test/squared_error.h"

namespace treadle::engine {
namespace {

/// A layer that says itself that it draws, with a batch norm inside that does not.
struct DrawingLayer final : torch::nn::Module, DrawsInTraining {
  explicit DrawingLayer(bool draws)
      : norm(register_module("norm", torch::nn::BatchNorm1d(2))), draws(draws) {}
  bool draws_in_training() const override { return draws; }

  torch::nn::BatchNorm1d norm;
  bool draws;
};

/// Half of the inputs are dropped before a linear layer and a batch norm.
struct DropoutModel final : Model {
  DropoutModel() {
    const TaskRandom random(1);
    dropout = register_module("dropout", torch::nn::Dropout(0.5));
    linear = register_module("linear", torch::nn::Linear(3, 2));
    norm = register_module("norm", torch::nn::BatchNorm1d(2));
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = norm(linear(dropout(inputs[0])));
  }

  torch::nn::Dropout dropout{nullptr};
  torch::nn::Linear linear{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

TEST(DropoutMode, IsThatOfModulesThatDrawAlone) {
  DropoutModel model;
  const auto off = std::make_shared<DrawingLayer>(false);
  const auto on = std::make_shared<DrawingLayer>(true);
  model.register_module("off", off);
  model.register_module("on", on);
  model.register_module("none", torch::nn::Dropout(0.0));

  EXPECT_EQ(set_dropout_mode(model), 2);

  EXPECT_FALSE(model.is_training());
  EXPECT_TRUE(model.dropout->is_training());
  EXPECT_FALSE(model.norm->is_training());
  EXPECT_TRUE(on->is_training());
  EXPECT_FALSE(on->norm->is_training());
  EXPECT_FALSE(off->is_training());
}

constexpr std::int64_t kDropoutRows = 6;

Batch dropout_batch(std::int64_t first) {
  Batch batch;
  batch.inputs = {at::randn({kDropoutRows, 3}, make_generator(static_cast<std::uint64_t>(first)))};
  batch.rows = at::arange(first, first + kDropoutRows, at::kLong);
  return batch;
}

DropoutRequest dropout_request(std::uint64_t seed, std::int64_t passes = 5) {
  return {passes, [seed](std::int64_t pass, std::int64_t row) {
            return seed + static_cast<std::uint64_t>(1000 * pass + row);
          }};
}

Predictions dropped_out(Model& model, const DropoutRequest& request, int workers) {
  const ObjectiveOf<SquaredError> loss;
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < 20; ++i)
    batches.push_back(dropout_batch(i * kDropoutRows));
  BatchList stream(std::move(batches));
  Predictions all;
  ThreadBudget budget(workers);
  budget.run([&] {
    evaluate({.model = &model, .objective = &loss, .dropout = &request, .with_uncertainty = true},
             stream, {}, [&](const Predictions& predictions, const Batch&) {
               if (all.empty()) {
                 all = predictions;
               } else {
                 append(all[0], predictions[0]);
               }
             });
  });
  return all;
}

TEST(EvaluateWithDropout, HasTheSameBitsForAnyWorkersAndOneBatchAlone) {
  DropoutModel model;
  set_dropout_mode(model);
  const at::Tensor statistics = model.norm->running_mean.clone();

  const Prediction one = dropped_out(model, dropout_request(7), 1).front();
  const Prediction three = dropped_out(model, dropout_request(7), 3).front();

  EXPECT_TRUE(at::equal(one.values, three.values));
  EXPECT_TRUE(at::equal(one.uncertainty.epistemic, three.uncertainty.epistemic));
  EXPECT_FALSE(at::equal(one.values, dropped_out(model, dropout_request(8), 1).front().values));
  EXPECT_TRUE(at::equal(model.norm->running_mean, statistics));
  EXPECT_TRUE(model.dropout->is_training());

  const DropoutRequest request = dropout_request(7);
  const ObjectiveOf<SquaredError> loss;
  const Prediction alone =
      predict({.model = &model, .objective = &loss, .dropout = &request}, dropout_batch(12))
          .front();
  EXPECT_TRUE(at::equal(alone.values, one.values.narrow(0, 12, kDropoutRows)));
}

TEST(EvaluateWithDropout, IsTheMeanAndTheDeviationOfPasses) {
  DropoutModel model;
  set_dropout_mode(model);
  const at::NoGradGuard no_gradients;
  const DropoutRequest request = dropout_request(3);
  const Batch batch = dropout_batch(0);
  std::vector<at::Tensor> passes;
  for (std::int64_t pass = 0; pass < request.passes; ++pass) {
    const TaskRandom random(request.seed(pass, 0));
    Outputs outputs(1);
    ForwardContext context;
    model.forward(batch.inputs, outputs, context);
    passes.push_back(outputs[0]);
  }
  const at::Tensor all = at::stack(passes);

  const ObjectiveOf<SquaredError> loss;
  const Prediction prediction =
      predict({.model = &model, .objective = &loss, .dropout = &request}, batch).front();

  EXPECT_TRUE(at::allclose(prediction.values, all.mean(0)));
  EXPECT_TRUE(
      at::allclose(prediction.uncertainty.epistemic, all.std(0, /*unbiased=*/false), 1e-5, 1e-6));
  EXPECT_GT(prediction.uncertainty.epistemic.min().item<double>(), 0);
}

}  // namespace
}  // namespace treadle::engine
