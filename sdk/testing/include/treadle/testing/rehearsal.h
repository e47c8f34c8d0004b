#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/core/module_state.h>
#include <treadle/core/training_workflow.h>
#include <treadle/testing/recording_context.h>
#include <treadle/testing/tiny_data.h>
#include <treadle/testing/training_fakes.h>

namespace treadle::testing {

/// What a rehearsal departs from the usual in.
struct Rehearsed {
  std::int64_t fixed_epochs = 0;
  bool has_validation = true;
  /// The validation rows say the opposite of the training rows: training makes that loss larger.
  bool contrary_validation = false;
  double learning_rate = 0.01;
  double dropout = 0.1;
  bool steep_loss = false;    ///< see SquaredError
  bool remembers = false;     ///< see TinyModel
  bool sixteen_bits = false;  ///< see TinyModel
};

/// A workflow and all it trains with, made as a host makes them. Two of the same are equal to the
/// bit and share nothing.
class Rehearsal {
 public:
  static constexpr std::int64_t kTrainingRows = 43;
  static constexpr std::int64_t kValidationRows = 17;

  explicit Rehearsal(std::unique_ptr<TrainingWorkflow> workflow, const Rehearsed& rehearsed = {})
      : workflow_(std::move(workflow)),
        model_(1, rehearsed.dropout, rehearsed.remembers,
               rehearsed.sixteen_bits ? at::kBFloat16 : at::kDouble),
        loss_(rehearsed.steep_loss),
        optimizer_(rehearsed.learning_rate),
        training_(noisy_line(kTrainingRows, 2, 0.1), transform_,
                  training_cut(workflow_->batch_plan())),
        validation_(noisy_line(kValidationRows, 3, rehearsed.contrary_validation ? -0.1 : 0.1),
                    transform_, {.batch_size = workflow_->batch_plan().evaluation_batch}) {
    metric_.start(number_target("price"));
    task_.model = &model_;
    task_.objective = &objective_;
    task_.optimizer = &optimizer_;
    task_.schedule = &schedule_;
    task_.training = &training_;
    task_.validation = rehearsed.has_validation ? &validation_ : nullptr;
    task_.metrics = {{&metric_, 0, number_target("price")}};
    task_.transforms = {&transform_};
    task_.fixed_epochs = rehearsed.fixed_epochs;
  }
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  TrainingResult train(RunContext& context) { return workflow_->train(task_, context); }
  ValidationResult validate(RunContext& context) { return workflow_->validate(task_, context); }

  const TrainingWorkflow& workflow() const { return *workflow_; }
  TrainingTask& task() { return task_; }
  TinyModel& model() { return model_; }
  TableSource& training() { return training_; }
  TableSource& validation() { return validation_; }
  const RollCall& metric() const { return metric_; }

  std::int64_t steps_per_epoch() const { return training_.batches_per_epoch(); }
  std::int64_t epochs() const {
    return task_.fixed_epochs > 0 ? task_.fixed_epochs : workflow_->planned_epochs();
  }
  std::int64_t total_steps() const { return epochs() * steps_per_epoch(); }
  /// The rate that the schedule gives to a step, from 1.
  double rate_of(std::int64_t step) const {
    return schedule_.rate_at(step - 1,
                             {optimizer_.learning_rate(), total_steps(), steps_per_epoch()});
  }

  /// The model's parameters and buffers as they are now.
  StateDict weights() const { return module_state(model_).snapshot(); }
  /// The mean loss over an epoch (from 0) of `source`, by hand; the model as it is, in eval mode.
  double loss_on(TableSource& source, std::int64_t epoch = 0) {
    const at::NoGradGuard no_gradients;
    model_.eval();
    double sum = 0;
    double weight = 0;
    const auto stream = source.epoch(epoch);
    for (Batch batch; stream->next(batch);) {
      Outputs outputs(1);
      ForwardContext context;
      model_.forward(batch.inputs, outputs, context);
      const BatchLoss::Term term = objective_.forward(outputs, batch).front();
      sum += term.sum.item<double>();
      weight += term.weight.item<double>();
    }
    return sum / weight;
  }

 private:
  static TableSource::Options training_cut(const BatchPlan& plan) {
    return {plan.training_batch, plan.shuffle, plan.drop_last};
  }

  std::unique_ptr<TrainingWorkflow> workflow_;
  Tenfold transform_;
  TinyModel model_;
  SquaredError loss_;
  Objective objective_ = objective_of(loss_);
  MomentumDescent optimizer_;
  SlowingRate schedule_;
  RollCall metric_;
  TableSource training_;
  TableSource validation_;
  TrainingTask task_;
};

inline bool same_bits(const StateDict& a, const StateDict& b) {
  if (a.tensors().size() != b.tensors().size())
    return false;
  for (const auto& [name, tensor] : a.tensors()) {
    if (!b.has_tensor(name) || !at::equal(tensor, b.tensor(name)))
      return false;
  }
  return true;
}

/// Whether every number of every tensor, also of the parts, is one.
inline bool is_finite(const StateDict& state) {
  for (const auto& [name, tensor] : state.tensors()) {
    if (!tensor.isfinite().all().item<bool>())
      return false;
  }
  for (const auto& [name, part] : state.parts()) {
    if (!is_finite(part))
      return false;
  }
  return true;
}

/// Compares all but the time it took.
inline void expect_same_history(const std::vector<EpochSummary>& got,
                                const std::vector<EpochSummary>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("epoch " + std::to_string(expected[i].epoch));
    EXPECT_EQ(got[i].epoch, expected[i].epoch);
    EXPECT_EQ(got[i].epochs, expected[i].epochs);
    EXPECT_EQ(got[i].step, expected[i].step);
    EXPECT_EQ(got[i].learning_rate, expected[i].learning_rate);
    EXPECT_EQ(got[i].training_loss, expected[i].training_loss);
    EXPECT_EQ(got[i].validation_loss, expected[i].validation_loss);
    EXPECT_EQ(got[i].best, expected[i].best);
    ASSERT_EQ(got[i].metrics.size(), expected[i].metrics.size());
    for (std::size_t m = 0; m < got[i].metrics.size(); ++m) {
      EXPECT_EQ(got[i].metrics[m].name, expected[i].metrics[m].name);
      EXPECT_EQ(got[i].metrics[m].value, expected[i].metrics[m].value);
    }
    ASSERT_EQ(got[i].observed.size(), expected[i].observed.size());
    for (std::size_t m = 0; m < got[i].observed.size(); ++m) {
      EXPECT_EQ(got[i].observed[m].name, expected[i].observed[m].name);
      EXPECT_EQ(got[i].observed[m].value, expected[i].observed[m].value);
    }
    EXPECT_EQ(got[i].decisions, expected[i].decisions);
  }
}

/// Compares all but the time it took.
inline void expect_same_result(const TrainingResult& got, const TrainingResult& expected) {
  EXPECT_EQ(got.final_loss, expected.final_loss);
  EXPECT_EQ(got.best_loss, expected.best_loss);
  EXPECT_EQ(got.best_epoch, expected.best_epoch);
  EXPECT_EQ(got.total_epochs, expected.total_epochs);
  EXPECT_EQ(got.selects_best, expected.selects_best);
  EXPECT_EQ(got.stop_reason, expected.stop_reason);
}

}  // namespace treadle::testing
