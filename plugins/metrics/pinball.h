#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "quantile_extras.h"

namespace treadle::metrics {

/// The pinball loss of predicted quantiles, from a prediction's extras ("q0.1"); the median may be
/// the prediction itself:
///
///     max(q * d, (q - 1) * d),   d = target - quantile
///
/// "pinball" is the mean over positions, width and quantiles, "pinball.q0.1" that of one quantile,
/// "coverage" the share of targets within the lowest and the highest quantile, both included.
/// Memory: a number a quantile.
class Pinball : public MetricComputer {
 public:
  explicit Pinball(const Config& config) : Pinball(config, "pinball") {}
  ~Pinball() override;

 protected:
  /// `name` is the component's.
  Pinball(const Config& config, std::string name);

  /// Over all quantiles; undefined without rows.
  Number mean_loss() const;

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  QuantileExtras quantiles_;
  std::string name_;
  std::vector<double> sums_;  // per quantile, of the mean over the width
  double covered_ = 0;
  double weight_ = 0;
};

/// `crps`: the continuous ranked probability score by quantiles, twice the mean pinball loss over
/// levels that are spread evenly: the more levels, the closer to the integral. (F. Laio and S.
/// Tamea, "Verification tools for probabilistic forecasts", 2007.)
class Crps final : public Pinball {
 public:
  explicit Crps(const Config& config) : Pinball(config, "crps") {}

 private:
  MetricResult do_compute() const override {
    const Number loss = mean_loss();
    return {{{"crps", loss.is_undefined() ? loss : Number(2 * loss), Direction::kLowerIsBetter}},
            {}};
  }
};

}  // namespace treadle::metrics
