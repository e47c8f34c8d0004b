#include "pinball.h"

#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ops/maximum.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {

Pinball::Pinball(const Config& config, std::string name)
    : quantiles_(QuantileExtras::levels_in(config), name), name_(std::move(name)) {}

Pinball::~Pinball() = default;

void Pinball::do_start(const TargetSpec& target) {
  expect_numbers(name_, target);
}

void Pinball::do_reset() {
  sums_.assign(quantiles_.levels().size(), 0);
  covered_ = 0;
  weight_ = 0;
}

void Pinball::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor& weights = positions.weights();
  const at::Tensor actual = positions.actual().to(at::kDouble);
  at::Tensor within;
  const std::vector<double>& levels = quantiles_.levels();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const at::Tensor d = actual.sub(positions.flat(quantiles_.in(prediction, i)).to(at::kDouble));
    const at::Tensor each = at::maximum(d.mul(levels[i]), d.mul(levels[i] - 1)).mean(1);
    sums_[i] += weighted_sum(each, weights).item<double>();
    if (i == 0)
      within = d.ge(0);
    if (i + 1 == levels.size())
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

Number Pinball::mean_loss() const {
  const double total = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  const Number mean = weighted_mean(total, weight_);
  return mean.is_undefined() ? mean : Number(mean / static_cast<double>(sums_.size()));
}

MetricResult Pinball::do_compute() const {
  const auto mean = [&](double sum) { return weighted_mean(sum, weight_); };
  MetricResult result{{{"pinball", mean_loss(), Direction::kLowerIsBetter}}, {}};
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    result.values.push_back(
        {"pinball." + quantiles_.names()[i], mean(sums_[i]), Direction::kLowerIsBetter});
  }
  result.values.push_back({"coverage", mean(covered_), Direction::kNone});
  return result;
}

StateDict Pinball::do_state() const {
  StateDict state;
  for (std::size_t i = 0; i < sums_.size(); ++i)
    state.put_number("sum-" + quantiles_.names()[i], sums_[i]);
  state.put_number("covered", covered_);
  state.put_number("weight", weight_);
  return state;
}

void Pinball::do_load_state(const StateDict& state) {
  for (std::size_t i = 0; i < sums_.size(); ++i)
    sums_[i] = state.number("sum-" + quantiles_.names()[i]);
  covered_ = state.number("covered");
  weight_ = state.number("weight");
}

}  // namespace treadle::metrics
