#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/core/model/model_spec.h>

namespace treadle::forecasting {

/// From windows [B, steps, channels] to forecasts [B, horizon, channels], the same way for all
/// channels.
///
/// - `repeat`: the last value, at each step. Without parameters.
/// - `seasonal`: the last period, again and again (seasonal naive). Without parameters.
/// - `linear`: one linear map from the steps of a window to those of the horizon.
/// - `nlinear`: of the window less its last value, which is added again.
/// - `dlinear`: two maps, of the trend and of what is left of the window without it; their sum.
///
/// The target's numbers are channels of the input, from "channel" on, in the same order and units.
/// A network computes all estimates that the loss lists for each of them (OutputSpec::estimates):
/// quantiles, or a location and a scale. Naive forecasts have values and quantiles only.
///
/// Zeng et al., "Are Transformers Effective for Time Series Forecasting?" (2023); Hyndman &
/// Athanasopoulos, "Forecasting: Principles and Practice", 3rd edition (2021), section 5.2.
class Forecaster : public GraphBuilder {
 public:
  ~Forecaster() override;

 protected:
  /// What a forecast is made of, and what of each channel it has.
  struct Task {
    std::int64_t steps;  ///< of a window
    std::int64_t horizon;
    std::vector<Estimate> estimates;  ///< one at least

    /// Of the forecast: all steps of the first estimate, then those of the second.
    std::int64_t rows() const { return horizon * static_cast<std::int64_t>(estimates.size()); }
  };

  explicit Forecaster(const Config& config);

  /// The step that scales the window and tags what window_unscale() needs. `affine`: as RevIN, with
  /// weights "revin.weight" and "revin.bias".
  static nlohmann::json window_scale(const std::string& method, bool affine = false);
  /// The step that undoes it for [B, task.rows(), channels]. Throws a DataError where estimates
  /// cannot be scaled: of counts.
  static nlohmann::json window_unscale(const Task& task);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const final;
  /// From the window to [B, task.rows(), channels].
  virtual nlohmann::json do_steps(const Task& task) const = 0;

  std::int64_t channel_;
};

class Repeat final : public Forecaster {
 public:
  explicit Repeat(const Config& config) : Forecaster(config) {}

 private:
  nlohmann::json do_steps(const Task& task) const override;
};

class Seasonal final : public Forecaster {
 public:
  explicit Seasonal(const Config& config)
      : Forecaster(config), period_(config.get<std::int64_t>("period")) {}

 private:
  nlohmann::json do_steps(const Task& task) const override;

  std::int64_t period_;
};

class Linear final : public Forecaster {
 public:
  explicit Linear(const Config& config) : Forecaster(config) {}

 private:
  nlohmann::json do_steps(const Task& task) const override;
};

class NLinear final : public Forecaster {
 public:
  explicit NLinear(const Config& config) : Forecaster(config) {}

 private:
  nlohmann::json do_steps(const Task& task) const override;
};

class DLinear final : public Forecaster {
 public:
  explicit DLinear(const Config& config)
      : Forecaster(config), kernel_(config.get<std::int64_t>("kernel_size")) {}

 private:
  nlohmann::json do_steps(const Task& task) const override;

  std::int64_t kernel_;
};

}  // namespace treadle::forecasting
