#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>

#include <treadle/core/components/module_state.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/training/training_workflow.h>
#include <treadle/engine/session.h>
#include <treadle/testing/model/recording_context.h>
#include <treadle/testing/support/tiny_data.h>
#include <treadle/testing/training/training_fakes.h>

namespace treadle::testing {

/// The loop of the standard training.
class EveryBatch final : public TrainingWorkflow {
  void do_train(TrainingSession& session) override {
    while (session.next_epoch()) {
      while (session.step(session.scheduled_rate())) {
      }
      session.finish_epoch();
    }
  }
};

/// What a rehearsal departs from the usual in.
struct Rehearsed {
  std::int64_t epochs = 5;
  bool is_refit = false;
  std::int64_t evaluate_every = 1;
  bool has_validation = true;
  /// The validation rows say the opposite of the training rows: training makes that loss larger.
  bool contrary_validation = false;
  double learning_rate = 0.01;
  double dropout = 0.1;
  bool steep_loss = false;    ///< see SquaredError
  bool keeps_state = false;   ///< see TinyModel
  bool sixteen_bits = false;  ///< see TinyModel
  Duration checkpoint_every{3, Duration::Unit::kSteps};
  c10::Device device = c10::kCPU;
  ParameterView::Path path = ParameterView::Path::kFastest;
  const DeviceBackend* capture = nullptr;  ///< see StepOptions::capture
  /// Of a loop that trains a model of its own: two inputs, one output. Empty: a TinyModel.
  std::function<std::shared_ptr<Model>()> make_model = {};
};

/// A training with a loop, callbacks and all they work with, made as a host makes them. Two of the
/// same are equal to the bit and share nothing.
class Rehearsal {
 public:
  static constexpr std::int64_t kTrainingRows = 43;
  static constexpr std::int64_t kValidationRows = 17;
  static constexpr std::int64_t kBatch = 16;

  using Callbacks = std::vector<std::unique_ptr<TrainingCallback>>;

  explicit Rehearsal(std::unique_ptr<TrainingWorkflow> loop, const Rehearsed& rehearsed = {},
                     Callbacks callbacks = {})
      : loop_(std::move(loop)),
        callbacks_(std::move(callbacks)),
        model_(1, rehearsed.dropout, rehearsed.keeps_state,
               rehearsed.sixteen_bits ? at::kBFloat16 : at::kDouble),
        loss_(rehearsed.steep_loss),
        optimizer_(rehearsed.learning_rate),
        training_(noisy_line(kTrainingRows, 2, 0.1), transform_,
                  {.batch_size = kBatch, .shuffle = true}),
        validation_(noisy_line(kValidationRows, 3, rehearsed.contrary_validation ? -0.1 : 0.1),
                    transform_, {.batch_size = 10}),
        in_order_(noisy_line(kTrainingRows, 2, 0.1), transform_, {.batch_size = 10}) {
    metric_.start(number_target("price"));
    if (rehearsed.make_model)
      own_model_ = rehearsed.make_model();
    setup_.model = own_model_ ? own_model_.get() : &model_;
    setup_.model->to(rehearsed.device);
    setup_.objective = &objective_;
    setup_.optimizer = &optimizer_;
    setup_.schedule = &schedule_;
    setup_.training = &training_;
    const LoopNeeds needs = loop_->needs();
    const bool is_one_pass = needs.rows_per_epoch.has_value();  // which evaluates its own batches
    setup_.validation = rehearsed.has_validation && !is_one_pass ? &validation_ : nullptr;
    setup_.rows.push_back({"training", nullptr, &in_order_});
    for (const LoopNeeds::Part& part : needs.parts) {
      const auto rows = static_cast<std::uint64_t>(4 + parts_.size());
      const auto source = [&](bool shuffle) {
        parts_.push_back(std::make_unique<TableSource>(
            noisy_line(20, rows, 0.1), transform_,
            TableSource::Options{.batch_size = shuffle ? kBatch : 10, .shuffle = shuffle}));
        return parts_.back().get();
      };
      TableSource* const training = source(true);
      setup_.rows.push_back({part.name, training, source(false)});
    }
    setup_.metrics = {{&metric_, 0, number_target("price")}};
    setup_.preparation = &preparation_;
    for (const auto& callback : callbacks_)
      setup_.callbacks.push_back(callback.get());
    setup_.epochs = rehearsed.epochs;
    setup_.is_refit = rehearsed.is_refit;
    setup_.evaluate_every = rehearsed.evaluate_every;
    setup_.checkpoint_every = rehearsed.checkpoint_every;
    setup_.path = rehearsed.path;
    setup_.capture = rehearsed.capture;
  }
  explicit Rehearsal(const Rehearsed& rehearsed = {}, Callbacks callbacks = {})
      : Rehearsal(std::make_unique<EveryBatch>(), rehearsed, std::move(callbacks)) {}
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  engine::TrainingResult train(engine::RunContext& context) {
    return engine::train(*loop_, setup_, context);
  }
  engine::ValidationResult validate() { return engine::validate(setup_, std::stop_token()); }

  engine::SessionSetup& setup() { return setup_; }
  TinyModel& model() { return model_; }
  TableSource& training() { return training_; }
  TableSource& validation() { return validation_; }
  const RollCall& metric() const { return metric_; }

  std::int64_t steps_per_epoch() const { return training_.batches_per_epoch().value(); }
  std::int64_t epochs() const { return setup_.epochs.value(); }
  std::int64_t total_steps() const { return epochs() * steps_per_epoch(); }
  /// The rate that the schedule gives to a step, from 1.
  double rate_of(std::int64_t step) const {
    return schedule_.rate_at(step - 1,
                             {optimizer_.learning_rate(), total_steps(), steps_per_epoch()});
  }

  /// The model's parameters and buffers as they are now.
  StateDict weights() const { return module_state(*setup_.model).snapshot(); }
  /// The mean loss over an epoch (from 0) of `source`, by hand; the model as it is, in eval mode.
  double loss_on(TableSource& source, std::int64_t epoch = 0) {
    const at::NoGradGuard no_gradients;
    setup_.model->eval();
    double sum = 0;
    double weight = 0;
    const auto stream = source.epoch(epoch);
    for (Batch batch; stream->next(batch);) {
      Outputs outputs(1);
      ForwardContext context;
      setup_.model->forward(batch.inputs, outputs, context);
      const BatchLoss::Term term = objective_.forward(outputs, batch).front();
      sum += term.sum.item<double>();
      weight += term.weight.item<double>();
    }
    return sum / weight;
  }

 private:
  std::unique_ptr<TrainingWorkflow> loop_;
  Callbacks callbacks_;
  Tenfold transform_;
  engine::BatchPreparation preparation_{DataSpec(), {&transform_}};
  TinyModel model_;
  std::shared_ptr<Model> own_model_;  // null: model_
  SquaredError loss_;
  Objective objective_ = objective_of(loss_);
  MomentumDescent optimizer_;
  SlowingRate schedule_;
  RollCall metric_;
  TableSource training_;
  TableSource validation_;
  TableSource in_order_;                             // the training rows
  std::vector<std::unique_ptr<TableSource>> parts_;  // two of each that the loop sets aside
  engine::SessionSetup setup_;
};

bool same_bits(const StateDict& a, const StateDict& b);

/// Whether every number of every tensor, also of the parts, is one.
bool is_finite(const StateDict& state);

/// Compares all but the time it took.
void expect_same_history(const std::vector<EpochSummary>& got,
                         const std::vector<EpochSummary>& expected);

/// Compares all but the time it took.
void expect_same_result(const engine::TrainingResult& got, const engine::TrainingResult& expected);

}  // namespace treadle::testing
