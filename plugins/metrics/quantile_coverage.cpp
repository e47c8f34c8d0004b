#include "quantile_coverage.h"

#include <ATen/core/Tensor.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {

QuantileCoverage::QuantileCoverage(const Config& config)
    : quantiles_(QuantileExtras::levels_in(config), "quantile_coverage") {}

void QuantileCoverage::do_start(const TargetSpec& target) {
  expect_numbers("quantile_coverage", target);
}

void QuantileCoverage::do_reset() {
  below_.assign(quantiles_.levels().size(), 0);
  within_ = 0;
  weight_ = 0;
}

void QuantileCoverage::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor actual = positions.actual().to(at::kDouble);
  const auto share = [&](const at::Tensor& is_met) {
    return weighted_sum(is_met.to(at::kDouble).mean(1), positions.weights()).item<double>();
  };
  at::Tensor within;
  for (std::size_t i = 0; i < below_.size(); ++i) {
    const at::Tensor quantile = positions.flat(quantiles_.in(prediction, i)).to(at::kDouble);
    const at::Tensor is_below = actual.le(quantile);
    below_[i] += share(is_below);
    if (i == 0)
      within = actual.ge(quantile);
    if (i + 1 == below_.size())
      within_ += share(within.logical_and(is_below));
  }
  weight_ += positions.total_weight();
}

void QuantileCoverage::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const QuantileCoverage&>(other);
  for (std::size_t i = 0; i < below_.size(); ++i)
    below_[i] += theirs.below_[i];
  within_ += theirs.within_;
  weight_ += theirs.weight_;
}

MetricResult QuantileCoverage::do_compute() const {
  MetricResult result;
  if (below_.size() > 1) {
    result.values.push_back(
        {"quantile_coverage", weighted_mean(within_, weight_), Direction::kNone});
  }
  for (std::size_t i = 0; i < below_.size(); ++i) {
    result.values.push_back({"quantile_coverage." + quantiles_.names()[i],
                             weighted_mean(below_[i], weight_), Direction::kNone});
  }
  return result;
}

StateDict QuantileCoverage::do_state() const {
  StateDict state;
  for (std::size_t i = 0; i < below_.size(); ++i)
    state.put_number("below-" + quantiles_.names()[i], below_[i]);
  state.put_number("within", within_);
  state.put_number("weight", weight_);
  return state;
}

void QuantileCoverage::do_load_state(const StateDict& state) {
  for (std::size_t i = 0; i < below_.size(); ++i)
    below_[i] = state.number("below-" + quantiles_.names()[i]);
  within_ = state.number("within");
  weight_ = state.number("weight");
}

}  // namespace treadle::metrics
