#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>

#include <treadle/base/error.h>
#include <treadle/core/model/model.h>
#include <treadle/core/validation/metric_computer.h>

/// Components made of a function, for programs and tests that need no class of their own:
///
///     registrar.add<MaxError>("max_error");        // where MaxError is
///     struct MaxError : treadle::FunctionMetric {
///       explicit MaxError(const treadle::Config&)
///           : FunctionMetric("max_error", treadle::TargetKind::kNumbers,
///           treadle::Direction::kLowerIsBetter,
///                            [](const Rows& rows) {
///                              return (rows.predictions -
///                              rows.targets).abs().max().item<double>();
///                            }) {}
///     };
namespace treadle {

/// A metric that is one number, a function of all rows at once. Keeps predictions and targets, so
/// its memory grows with the validation rows.
class FunctionMetric : public MetricComputer {
 public:
  /// All positions that are no padding, in order; n of them.
  struct Rows {
    at::Tensor predictions;  ///< [n, width]: probabilities of classes, numbers
    at::Tensor targets;      ///< int64 [n] for classes, else [n, width]
    at::Tensor weights;      ///< [n], > 0
  };
  using Function = std::function<double(const Rows&)>;

  /// For targets of one kind. Expects a function; without rows it is not called: the value is
  /// undefined then.
  FunctionMetric(std::string name, TargetKind kind, Direction direction, Function function)
      : name_(std::move(name)), kind_(kind), direction_(direction), function_(std::move(function)) {
    TREADLE_EXPECTS(function_ != nullptr, "a metric of a function needs the function");
  }

 private:
  void do_start(const TargetSpec& target) override {
    if (target.kind != kind_) {
      throw DataError("the metric \"" + name_ + "\" is for a target of " +
                      std::string(name_of(kind_)) + ", and \"" + target.name + "\" is one of " +
                      std::string(name_of(target.kind)));
    }
    target_ = target;
  }
  void do_reset() override { parts_.clear(); }
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const at::Tensor flat_weights =
        target.weights().defined() ? target.weights().flatten()
                                   : at::ones({target.positions()}, prediction.values.options());
    const at::Tensor real = at::nonzero(flat_weights).squeeze(1);
    const at::Tensor values = target_.kind == TargetKind::kClasses
                                  ? target.values().flatten()
                                  : target.values().reshape({-1, target_.width()});
    parts_.push_back(
        {prediction.values.reshape({-1, prediction.values.size(-1)}).index_select(0, real),
         values.index_select(0, real), flat_weights.index_select(0, real)});
  }
  void do_merge(const MetricComputer& other) override {
    const auto& more = static_cast<const FunctionMetric&>(other).parts_;
    parts_.insert(parts_.end(), more.begin(), more.end());
  }
  MetricResult do_compute() const override {
    const Rows rows = joined();
    const bool has_rows = rows.weights.defined() && rows.weights.size(0) > 0;
    const Number value = has_rows ? Number(function_(rows)) : weighted_mean(0, 0);
    return {{{name_, value, direction_}}, {}};
  }

  Rows joined() const {
    if (parts_.empty())
      return {};
    std::vector<at::Tensor> predictions, targets, weights;
    for (const Rows& part : parts_) {
      predictions.push_back(part.predictions);
      targets.push_back(part.targets);
      weights.push_back(part.weights);
    }
    return {at::cat(predictions), at::cat(targets), at::cat(weights)};
  }

  StateDict do_state() const override {
    StateDict state;
    if (const Rows rows = joined(); rows.weights.defined()) {
      state.put("predictions", rows.predictions);
      state.put("targets", rows.targets);
      state.put("weights", rows.weights);
    }
    return state;
  }
  void do_load_state(const StateDict& state) override {
    parts_.clear();
    if (state.has_tensor("weights")) {
      parts_.push_back(
          {state.tensor("predictions"), state.tensor("targets"), state.tensor("weights")});
    }
  }

  std::string name_;
  TargetKind kind_;
  Direction direction_;
  Function function_;
  TargetSpec target_;
  std::vector<Rows> parts_;
};

/// A model provider from a function that makes the model.
class FunctionModelProvider : public ModelProvider {
 public:
  using Function = std::function<std::shared_ptr<Model>(const ModelSpec&)>;

  /// Expects a function.
  explicit FunctionModelProvider(Function function) : function_(std::move(function)) {
    TREADLE_EXPECTS(function_ != nullptr, "a model of a function needs the function");
  }

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override { return function_(spec); }

  Function function_;
};

}  // namespace treadle
