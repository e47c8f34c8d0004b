#include "pinball.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/ops/maximum.h>

#include <treadle/base/error.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {

Pinball::Pinball(const Config& config) : quantiles_(config.get<std::vector<double>>("quantiles")) {
  if (std::adjacent_find(quantiles_.begin(), quantiles_.end(), std::greater_equal<>()) !=
      quantiles_.end())
    config.fail("quantiles", "must ascend, each greater than the one before");
  for (const double quantile : quantiles_)
    names_.push_back("q" + nlohmann::json(quantile).dump());
}

void Pinball::do_start(const TargetSpec& target) {
  expect_numbers("pinball", target);
}

void Pinball::do_reset() {
  sums_.assign(quantiles_.size(), 0);
  covered_ = 0;
  weight_ = 0;
}

const at::Tensor& Pinball::quantile_of(const Prediction& prediction, std::size_t quantile) const {
  std::string names;
  for (const Prediction::Extra& extra : prediction.extras) {
    if (extra.name == names_[quantile])
      return extra.values;
    names += (names.empty() ? "" : ", ") + extra.name;
  }
  if (quantiles_[quantile] == 0.5)
    return prediction.values;
  throw DataError("metric \"pinball\" needs the quantile " + names_[quantile] +
                  ", but the loss predicts " + (names.empty() ? "no quantiles" : names) +
                  "; give the metric and the loss \"quantile\" the same \"quantiles\"");
}

void Pinball::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor& weights = positions.weights();
  const at::Tensor actual = positions.actual().to(at::kDouble);
  at::Tensor within;
  for (std::size_t i = 0; i < quantiles_.size(); ++i) {
    const at::Tensor d = actual.sub(positions.flat(quantile_of(prediction, i)).to(at::kDouble));
    const at::Tensor each = at::maximum(d.mul(quantiles_[i]), d.mul(quantiles_[i] - 1)).mean(1);
    sums_[i] += weighted_sum(each, weights).item<double>();
    if (i == 0)
      within = d.ge(0);
    if (i + 1 == quantiles_.size())
      within = within.logical_and(d.le(0));
  }
  covered_ += weighted_sum(within.to(at::kDouble).mean(1), weights).item<double>();
  weight_ += positions.total_weight();
}

void Pinball::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const Pinball&>(other);
  for (std::size_t i = 0; i < sums_.size(); ++i)
    sums_[i] += theirs.sums_[i];
  covered_ += theirs.covered_;
  weight_ += theirs.weight_;
}

MetricResult Pinball::do_compute() const {
  const auto mean = [&](double sum) { return weight_ > 0 ? sum / weight_ : std::nan(""); };
  MetricResult result;
  double total = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    total += sums_[i];
    result.values.push_back({"pinball." + names_[i], mean(sums_[i]), Direction::kLowerIsBetter});
  }
  result.values.insert(
      result.values.begin(),
      {"pinball", mean(total) / static_cast<double>(sums_.size()), Direction::kLowerIsBetter});
  result.values.push_back({"coverage", mean(covered_), Direction::kNone});
  return result;
}

StateDict Pinball::do_state() const {
  StateDict state;
  for (std::size_t i = 0; i < sums_.size(); ++i)
    state.put_number("sum-" + names_[i], sums_[i]);
  state.put_number("covered", covered_);
  state.put_number("weight", weight_);
  return state;
}

void Pinball::do_load_state(const StateDict& state) {
  for (std::size_t i = 0; i < sums_.size(); ++i)
    sums_[i] = state.number("sum-" + names_[i]);
  covered_ = state.number("covered");
  weight_ = state.number("weight");
}

}  // namespace treadle::metrics
