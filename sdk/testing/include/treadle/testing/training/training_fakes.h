#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/data/batch_stream.h>
#include <treadle/core/data/transform.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/batches.h>

/// The smallest things a training workflow can train with. Each has one trait that a careless
/// workflow trips over.
namespace treadle::testing {

/// Two linear layers. Its dropout depends on the random stream of each step; its buffer is changed
/// by training alone. One that `keeps_state` carries from batch to batch what moves its outputs. It
/// computes in its own dtype, between inputs and outputs in float64; one of bfloat16 trains by its
/// masters, which a checkpoint needs. Its output may be deferred.
class TinyModel final : public Model, public LogsValues {
 public:
  explicit TinyModel(std::uint64_t seed, double dropout = 0.1, bool keeps_state = false,
                     at::ScalarType dtype = at::kDouble)
      : dropout_(dropout), keeps_state_(keeps_state), dtype_(dtype) {
    const TaskRandom random(seed);
    hidden_ = register_module("hidden", torch::nn::Linear(2, 6));
    output_ = register_module("output", torch::nn::Linear(6, 1));
    to(dtype);
    rows_seen_ = register_buffer("rows_seen", at::zeros({1}, at::kLong));
  }

  torch::nn::Module& hidden() { return *hidden_; }

  std::vector<std::string> logged_names() const override { return {"hidden"}; }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    at::Tensor hidden = hidden_->forward(inputs[0].to(dtype_)).tanh();
    context.log("hidden", hidden, Reduction::kNorm);
    if (is_training()) {
      rows_seen_.add_(inputs[0].size(0));
      hidden = at::dropout(hidden, dropout_, true);
    }
    if (context.takes_deferred_output() && !keeps_state_) {
      context.defer_output({hidden,
                            [this](const at::Tensor& features) {
                              return output_->forward(features).to(at::kDouble);
                            },
                            output_->parameters()});
      return;
    }
    outputs[0] = output_->forward(hidden).to(at::kDouble);
    if (!keeps_state_)
      return;
    if (context.state().has_tensor("mean"))
      outputs[0] = outputs[0].add(context.state().tensor("mean"));
    context.state().put("mean", outputs[0].mean());
  }

 private:
  double dropout_;
  bool keeps_state_;
  at::ScalarType dtype_;
  torch::nn::Linear hidden_{nullptr};
  torch::nn::Linear output_{nullptr};
  at::Tensor rows_seen_;
};

/// Half the squared error of each row, weighted. `steep` gives a gradient that is not a number to a
/// loss that is one.
class SquaredError final : public Loss {
 public:
  explicit SquaredError(bool steep = false) : steep_(steep) {}

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", {target.width()}}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor error = outputs[0].sub(target.values());
    at::Tensor each = error.square().sum(1).div(2);
    if (steep_)
      each = each.add(error.mul(0).square().sqrt().sum(1));  // 0, with a slope of 0 / 0
    return {each.mul(target.weights()).sum(), target.weights().sum()};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }

  bool steep_;
};

/// A single loss on a single target as what a training minimizes. The loss is borrowed.
inline Objective objective_of(const Loss& loss, const TargetSpec& target = number_target("price")) {
  return {{{.loss = &loss}}, std::span(&target, 1)};
}

/// Gradient descent with momentum: a resumed training that has lost the slots goes another way.
class MomentumDescent final : public Optimizer {
 public:
  explicit MomentumDescent(double learning_rate) : learning_rate_(learning_rate) {}

 private:
  double do_learning_rate() const override { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const override { return {{"momentum"}}; }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& run : view.runs()) {
      const at::Tensor momentum = 0.5 * run.slot(0) + run.gradients();
      run.set_slot(0, momentum);
      run.set_parameters(run.parameters() - view.learning_rate() * momentum);
    }
  }

  double learning_rate_;
};

/// Back-propagation that logs how many rows each call has.
class CountsRows final : public GradientStrategy, public LogsValues {
 public:
  std::vector<std::string> logged_names() const override { return {"rows"}; }

 private:
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    context.log("rows", at::scalar_tensor(batch.size(), at::kDouble));
    return back_propagate(task, batch, context);
  }
};

/// A line from the optimizer's rate to half of it: no two steps have the same.
class SlowingRate final : public LearningRateSchedule {
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    const double done = static_cast<double>(step) / static_cast<double>(span.end());
    return span.base_rate * (1 - 0.5 * std::min(done, 1.0));
  }
};

/// The mean absolute error, and which rows it was computed from.
class RollCall final : public MetricComputer {
 public:
  /// Since the last reset, in order.
  const std::vector<std::int64_t>& rows() const { return rows_; }

 private:
  void do_start(const TargetSpec&) override {}
  void do_reset() override {
    rows_.clear();
    sum_ = 0;
  }
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const std::int64_t* rows = target.batch().rows.data_ptr<std::int64_t>();
    rows_.insert(rows_.end(), rows, rows + target.rows());
    sum_ += prediction.values.sub(target.values()).abs().sum().item<double>();
  }
  void do_merge(const MetricComputer& other) override {
    const auto& more = static_cast<const RollCall&>(other);
    rows_.insert(rows_.end(), more.rows_.begin(), more.rows_.end());
    sum_ += more.sum_;
  }
  MetricResult do_compute() const override {
    return {{{"mae", weighted_mean(sum_, static_cast<double>(rows_.size())),
              Direction::kLowerIsBetter}},
            {}};
  }
  StateDict do_state() const override {
    StateDict state;
    state.put("rows", nlohmann::json(rows_));
    state.put_number("sum", sum_);
    return state;
  }
  void do_load_state(const StateDict& state) override {
    rows_ = state.value("rows").get<std::vector<std::int64_t>>();
    sum_ = state.number("sum");
  }

  std::vector<std::int64_t> rows_;
  double sum_ = 0;
};

/// Gives the model targets of which those in the data are a tenth. TableSource applies it; a
/// workflow inverts it.
class Tenfold final : public Transform {
  void do_fit(const RowReader&, const RowList&) override {}
  DataSpec do_output_spec(const DataSpec& before) const override { return before; }
  void do_apply(Batch& batch, const ApplyContext&) const override {
    batch.targets[0] = batch.targets[0].mul(10);
  }
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view) const override {
    return predictions.div(10);
  }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}
};

/// A table in memory, cut into batches as the framework cuts them: which rows are in which batch
/// depends on the seed and the epoch, and opening an epoch ends the stream before.
class TableSource final : public BatchSource {
 public:
  struct Options {
    std::int64_t batch_size = 16;
    bool shuffle = false;
    bool drop_last = false;
  };

  TableSource(Batch table, const Transform& transform, Options options, std::uint64_t seed = 7)
      : table_(std::move(table)), transform_(transform), options_(options), random_(seed) {}

  /// From batch `batch` of `epoch` on (from 0), targets are not numbers.
  void spoil(std::int64_t epoch, std::int64_t batch) {
    spoiled_from_ = epoch * batches_per_epoch().value() + batch;
  }

 private:
  class Stream final : public BatchStream {
   public:
    Stream(TableSource& source, std::int64_t epoch, std::int64_t batch)
        : source_(source), number_(++source.opened_), epoch_(epoch), batch_(batch) {}

   private:
    bool do_next(Batch& batch) override {
      TREADLE_EXPECTS(number_ == source_.opened_, "another epoch of this source has been opened");
      if (batch_ == source_.batches_per_epoch())
        return false;
      batch = source_.batch(epoch_, batch_++);
      return true;
    }
    StateDict do_state() const override {
      StateDict state;
      state.put("epoch", nlohmann::json(epoch_));
      state.put("batch", nlohmann::json(batch_));
      return state;
    }
    void do_load_state(const StateDict& state) override {
      epoch_ = state.value("epoch").get<std::int64_t>();
      batch_ = state.value("batch").get<std::int64_t>();
    }

    TableSource& source_;
    std::int64_t number_;
    std::int64_t epoch_;
    std::int64_t batch_;
  };

  std::int64_t rows() const { return table_.size(); }
  std::optional<std::int64_t> do_batches_per_epoch() const override {
    const std::int64_t last = options_.drop_last ? 0 : options_.batch_size - 1;
    return (rows() + last) / options_.batch_size;
  }
  std::unique_ptr<BatchStream> do_epoch(std::int64_t epoch, std::int64_t first_batch) override {
    return std::make_unique<Stream>(*this, epoch, first_batch);
  }

  Batch batch(std::int64_t epoch, std::int64_t number) const {
    std::vector<std::int64_t> order = row_numbers(0, rows());
    if (options_.shuffle)
      random_.bits("shuffle", {static_cast<std::uint64_t>(epoch)}).shuffle(order);
    const at::Tensor rows = at::tensor(order).slice(0, number * options_.batch_size,
                                                    (number + 1) * options_.batch_size);
    const auto chosen = [&](const at::Tensor& tensor) { return tensor.index_select(0, rows); };
    const std::vector<at::Tensor> targets{chosen(table_.targets[0])};
    Batch batch{{chosen(table_.inputs[0])}, targets, targets, {}, chosen(table_.weights), rows};
    transform_.apply(batch, {});
    if (epoch * batches_per_epoch().value() + number >= spoiled_from_)
      batch.targets[0].fill_(std::numeric_limits<double>::quiet_NaN());
    return batch;
  }

  Batch table_;
  const Transform& transform_;
  Options options_;
  RandomStreams random_;
  std::int64_t opened_ = 0;
  std::int64_t spoiled_from_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace treadle::testing
