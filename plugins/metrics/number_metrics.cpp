#include "number_metrics.h"

#include <cmath>
#include <string>

#include <ATen/ops/abs.h>
#include <ATen/ops/square.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

double same(double mean) {
  return mean;
}
double root(double mean) {
  return std::sqrt(mean);
}

at::Tensor differences(const Positions& positions) {
  return at::sub(positions.predicted().to(at::kDouble), positions.actual().to(at::kDouble));
}

void load_same_size(at::Tensor& tensor, const StateDict& state, std::string_view name) {
  const at::Tensor& stored = state.tensor(name);
  if (stored.sizes() != tensor.sizes())
    throw StorageError("the saved metric belongs to a target of another width");
  tensor.copy_(stored);
}

}  // namespace

const ErrorScore kMse{"mse", [](const at::Tensor& x) { return at::square(x); }, &same};
const ErrorScore kRmse{"rmse", [](const at::Tensor& x) { return at::square(x); }, &root};
const ErrorScore kMae{"mae", [](const at::Tensor& x) { return at::abs(x); }, &same};

ErrorMetric::ErrorMetric(const ErrorScore& score) : score_(score) {}

void ErrorMetric::do_start(const TargetSpec& target) {
  expect_numbers(score_.name, target);
  sums_ = at::zeros({target.width()}, at::kDouble);
}

void ErrorMetric::do_reset() {
  sums_.zero_();
  weight_ = 0;
}

void ErrorMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  sums_.add_(weighted_sum(score_.penalty(differences(positions)), positions.weights()));
  weight_ += positions.total_weight();
}

void ErrorMetric::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const ErrorMetric&>(other);
  sums_.add_(theirs.sums_);
  weight_ += theirs.weight_;
}

MetricResult ErrorMetric::do_compute() const {
  Number value = weighted_mean(0, weight_);
  if (!value.is_undefined()) {
    const auto sums = sums_.accessor<double, 1>();
    double sum = 0;
    for (std::int64_t i = 0; i < sums.size(0); ++i)
      sum += score_.of_mean(sums[i] / weight_);
    value = sum / static_cast<double>(sums.size(0));
  }
  return {{{std::string(score_.name), value, Direction::kLowerIsBetter}}, {}};
}

StateDict ErrorMetric::do_state() const {
  StateDict state;
  state.put("sums", sums_);
  state.put("weight", nlohmann::json(weight_));
  return state;
}

void ErrorMetric::do_load_state(const StateDict& state) {
  load_same_size(sums_, state, "sums");
  weight_ = state.value("weight").get<double>();
}

R2::R2(const Config&) {}

void R2::do_start(const TargetSpec& target) {
  expect_numbers("r2", target);
  moments_.errors = at::zeros({target.width()}, at::kDouble);
  moments_.mean = at::zeros({target.width()}, at::kDouble);
  moments_.deviations = at::zeros({target.width()}, at::kDouble);
}

void R2::do_reset() {
  moments_.errors.zero_();
  moments_.mean.zero_();
  moments_.deviations.zero_();
  moments_.weight = 0;
  moments_.count = 0;
}

void R2::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor& weights = positions.weights();
  const double weight = positions.total_weight();
  if (weight == 0)
    return;
  const at::Tensor targets = positions.actual().to(at::kDouble);
  const at::Tensor mean = weighted_sum(targets, weights).div_(weight);
  add({weighted_sum(at::square(differences(positions)), weights), mean,
       weighted_sum(at::square(at::sub(targets, mean)), weights), weight, positions.count()});
}

void R2::add(const Moments& more) {
  if (more.weight == 0)
    return;
  const double weight = moments_.weight + more.weight;
  const at::Tensor shift = at::sub(more.mean, moments_.mean);
  moments_.errors.add_(more.errors);
  moments_.deviations.add_(more.deviations)
      .add_(at::square(shift).mul_(moments_.weight * more.weight / weight));
  moments_.mean.add_(shift, more.weight / weight);
  moments_.weight = weight;
  moments_.count += more.count;
}

void R2::do_merge(const MetricComputer& other) {
  add(static_cast<const R2&>(other).moments_);
}

MetricResult R2::do_compute() const {
  Number value = weighted_mean(0, moments_.weight);
  if (moments_.count == 1) {
    value = Number::undefined("there is one row, and it takes two");
  } else if (moments_.count >= 2) {
    const auto errors = moments_.errors.accessor<double, 1>();
    const auto deviations = moments_.deviations.accessor<double, 1>();
    double sum = 0;
    for (std::int64_t i = 0; i < errors.size(0); ++i) {
      if (errors[i] == 0)
        sum += 1;
      else if (deviations[i] != 0)
        sum += 1 - errors[i] / deviations[i];
    }
    value = sum / static_cast<double>(errors.size(0));
  }
  return {{{"r2", value, Direction::kHigherIsBetter}}, {}};
}

StateDict R2::do_state() const {
  StateDict state;
  state.put("errors", moments_.errors);
  state.put("mean", moments_.mean);
  state.put("deviations", moments_.deviations);
  state.put("weight", nlohmann::json(moments_.weight));
  state.put("count", nlohmann::json(moments_.count));
  return state;
}

void R2::do_load_state(const StateDict& state) {
  load_same_size(moments_.errors, state, "errors");
  load_same_size(moments_.mean, state, "mean");
  load_same_size(moments_.deviations, state, "deviations");
  moments_.weight = state.value("weight").get<double>();
  moments_.count = state.value("count").get<std::int64_t>();
}

}  // namespace treadle::metrics
