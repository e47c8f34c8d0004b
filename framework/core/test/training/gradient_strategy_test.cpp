#include <treadle/core/training/gradient_strategy.h>

#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <span>
#include <vector>

#include <treadle/base/error.h>

namespace treadle {
namespace {

/// state <- w * state + x, carried from batch to batch; the output is the state.
class Integrator : public Model {
 public:
  Integrator() { w = register_parameter("w", at::full({1}, 0.5, at::kDouble)); }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    at::Tensor state = context.state().has_part("cell")
                           ? context.state().part("cell").tensor("state")
                           : at::zeros({inputs[0].size(0), 1}, at::kDouble);
    for (std::int64_t time = 0; time < inputs[0].size(1); ++time) {
      if (context.truncates_bptt())
        state = state.detach();
      state = state * w + inputs[0].slice(1, time, time + 1);
    }
    StateDict cell;
    cell.put("state", state);
    context.state().put("cell", std::move(cell));
    outputs[0] = state;
  }
  at::Tensor w;
};

class Sum : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec&) const override { return {{"y", {1}}}; }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const TargetBatch&) const override {
    return {outputs[0].sum(), {}};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

Batch ones(std::int64_t rows, std::int64_t times) {
  Batch batch;
  batch.inputs = {at::ones({rows, times}, at::kDouble)};
  batch.targets = batch.original_targets = {at::zeros({rows, 1}, at::kDouble)};
  batch.rows = at::zeros({rows}, at::kLong);
  return batch;
}

TEST(BackPropagate, GivesTheGradientOfTheSumAndLetsGoOfTheGraph) {
  Integrator model;
  const Sum loss;
  const TargetSpec target = number_target("y");
  const Objective objective({{.loss = &loss}}, std::span(&target, 1));
  ForwardContext context;

  const BatchLoss batch_loss = back_propagate({&model, &objective}, ones(2, 3), context);

  // y = ((0·w + 1)·w + 1)·w + 1 = w² + w + 1, dy/dw = 2w + 1 = 2, for two rows.
  EXPECT_DOUBLE_EQ(batch_loss.terms[0].sum.item<double>(), 2 * 1.75);
  EXPECT_FALSE(batch_loss.terms[0].sum.requires_grad());
  EXPECT_DOUBLE_EQ(model.w.grad().item<double>(), 4);
}

TEST(BackPropagate, RefusesALossThatDependsOnNothingTrained) {
  Integrator model;
  model.w.set_requires_grad(false);
  const Sum loss;
  const TargetSpec target = number_target("y");
  const Objective objective({{.loss = &loss}}, std::span(&target, 1));
  ForwardContext context;

  try {
    back_propagate({&model, &objective}, ones(2, 3), context);
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_NE(std::string(error.what()).find("freeze fewer"), std::string::npos) << error.what();
  }
}

TEST(BackPropagate, EndsGradientsAtWhatWasCarriedIntoTheBatch) {
  Integrator model;
  const Sum loss;
  const TargetSpec target = number_target("y");
  const Objective objective({{.loss = &loss}}, std::span(&target, 1));
  ForwardContext context;
  back_propagate({&model, &objective}, ones(1, 3), context);
  EXPECT_FALSE(context.state().part("cell").tensor("state").requires_grad());
  model.zero_grad();

  const BatchLoss batch_loss = back_propagate({&model, &objective}, ones(1, 1), context);

  EXPECT_DOUBLE_EQ(batch_loss.terms[0].sum.item<double>(), 1.75 * 0.5 + 1);
  EXPECT_DOUBLE_EQ(model.w.grad().item<double>(), 1.75) << "the state counts as a number";
}

TEST(TruncatingBptt, ReachBackOneStepOfTime) {
  Integrator model;
  const Sum loss;
  const TargetSpec target = number_target("y");
  const Objective objective({{.loss = &loss}}, std::span(&target, 1));
  ForwardContext context;
  {
    const TruncatingBptt one_step(context);
    back_propagate({&model, &objective}, ones(1, 3), context);
  }
  // d(state·w + 1)/dw with the state w + 1 = 1.5 as a number; all of time would give 2.
  EXPECT_DOUBLE_EQ(model.w.grad().item<double>(), 1.5);
}

TEST(TruncatingBptt, EndWithTheirScopeAndNest) {
  ForwardContext context;
  EXPECT_FALSE(context.truncates_bptt());
  {
    const TruncatingBptt outer(context);
    {
      const TruncatingBptt inner(context);
      EXPECT_TRUE(context.truncates_bptt());
    }
    EXPECT_TRUE(context.truncates_bptt());
  }
  EXPECT_FALSE(context.truncates_bptt());
}

TEST(TruncatingBptt, AreThoseOfThePartsToo) {
  ForwardContext context;
  const TruncatingBptt one_step(context);

  EXPECT_TRUE(context.part("part-1").truncates_bptt());
}

/// Of whole batches, as a correlation is.
class NoSum final : public Sum {
  bool do_is_additive() const override { return false; }
};

TEST(GradientsInParts, DeriveEachPartsTaskFromTheGivenOne) {
  Integrator model;
  const Sum loss;
  const TargetSpec target = number_target("y");
  const Objective objective({{.loss = &loss}}, std::span(&target, 1));
  const Batch batch = ones(5, 2);
  const Objective::Scales of_step(objective, batch);
  Timeline timeline;
  ForwardContext context;
  const TruncatingBptt one_step(context);
  for (const Objective::Scales* scales :
       {static_cast<const Objective::Scales*>(nullptr), &of_step}) {
    const GradientTask task{&model, &objective, scales, &timeline};
    std::vector<std::int64_t> sizes;

    const BatchLoss total = add_gradients_in_parts(
        task, batch, context, 3,
        [&](const GradientTask& of_part, const Batch& part, ForwardContext& part_context) {
          EXPECT_EQ(of_part.model, &model);
          EXPECT_EQ(of_part.objective, &objective);
          EXPECT_EQ(of_part.timeline, &timeline);
          EXPECT_NE(of_part.scales, nullptr);
          EXPECT_TRUE(scales == nullptr || of_part.scales == scales);
          EXPECT_TRUE(part_context.truncates_bptt());
          sizes.push_back(part.size());
          return back_propagate(of_part, part, part_context);
        });

    EXPECT_EQ(sizes, (std::vector<std::int64_t>{1, 2, 2}));
    EXPECT_EQ(total.terms[0].count, 5);
  }
}

TEST(GradientsInParts, AreRefusedForALossOverWholeBatches) {
  Integrator model;
  const NoSum loss;
  const TargetSpec target = number_target("y");
  const Objective objective({{.loss = &loss}}, std::span(&target, 1));
  ForwardContext context;
  const auto work = [](const GradientTask& task, const Batch& part, ForwardContext& of_part) {
    return back_propagate(task, part, of_part);
  };

  EXPECT_THROW(add_gradients_in_parts({&model, &objective}, ones(4, 1), context, 2, work),
               UsageError);
}

class NoLoss : public GradientStrategy {
  BatchLoss do_add_gradients(const GradientTask&, const Batch&, ForwardContext&) const override {
    return {};
  }
};

TEST(GradientStrategy, MustReturnALoss) {
  Integrator model;
  const Sum loss;
  const TargetSpec target = number_target("y");
  const Objective objective({{.loss = &loss}}, std::span(&target, 1));
  ForwardContext context;
  NoLoss strategy;
  strategy.set_origin("gradients \"none\" of plugin org.example 1.0.0");
  try {
    strategy.add_gradients({&model, &objective}, ones(1, 1), context);
    FAIL() << "it was accepted";
  } catch (const PluginError& error) {
    EXPECT_STREQ(error.what(),
                 "gradients \"none\" of plugin org.example 1.0.0 failed in add_gradients(): it "
                 "returned no loss");
  }
}

TEST(Batch, SliceIsAViewOfTheSameRowsOfEveryTensor) {
  Batch batch = ones(4, 2);
  batch.targets = {at::tensor({0, 1, 2, 3}, at::kLong), at::ones({4, 2})};
  batch.original_targets = {batch.targets[0], at::zeros({4, 2})};
  batch.position_weights = {at::Tensor(), at::tensor({0.0, 1.0, 2.0, 3.0})};
  batch.weights = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble);
  batch.rows = at::tensor({10, 11, 12, 13}, at::kLong);

  const Batch middle = batch.slice(1, 2);

  EXPECT_EQ(middle.size(), 2);
  EXPECT_EQ(middle.rows[0].item<std::int64_t>(), 11);
  EXPECT_EQ(middle.targets[0][1].item<std::int64_t>(), 2);
  EXPECT_FALSE(middle.position_weights[0].defined());
  EXPECT_EQ(middle.position_weights[1][0].item<double>(), 1);
  EXPECT_EQ(middle.weights[1].item<double>(), 3);
  EXPECT_TRUE(middle.targets[0].is_same(middle.original_targets[0]));
  EXPECT_FALSE(middle.targets[1].is_same(middle.original_targets[1]));
  EXPECT_EQ(middle.inputs[0].data_ptr(), batch.inputs[0][1].data_ptr());
  Batch to_predict = ones(2, 1);
  to_predict.targets.clear();
  to_predict.original_targets.clear();
  EXPECT_TRUE(to_predict.slice(0, 1).targets.empty());
}

}  // namespace
}  // namespace treadle
