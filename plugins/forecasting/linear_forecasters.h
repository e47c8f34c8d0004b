#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/graph_builder.h>

namespace treadle::forecasting {

/// One linear map from the steps of a window to those of the horizon, shared by all channels:
/// [B, steps, channels] to [B, horizon, channels].
///
/// - `linear`: the map alone.
/// - `nlinear`: of the window less its last value, which is added again.
/// - `dlinear`: two maps, of the trend and of what is left of the window without it; their sum.
///
/// The target's numbers are channels of the input, from "channel" on, in the same order and units.
///
/// Zeng et al., "Are Transformers Effective for Time Series Forecasting?" (2023).
class LinearForecaster : public GraphBuilder {
 public:
  ~LinearForecaster() override;

 protected:
  explicit LinearForecaster(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const final;
  /// From the window to [B, horizon, channels].
  virtual nlohmann::json do_steps(std::int64_t horizon) const = 0;

  std::int64_t channel_;
};

class Linear final : public LinearForecaster {
 public:
  explicit Linear(const Config& config) : LinearForecaster(config) {}

 private:
  nlohmann::json do_steps(std::int64_t horizon) const override;
};

class NLinear final : public LinearForecaster {
 public:
  explicit NLinear(const Config& config) : LinearForecaster(config) {}

 private:
  nlohmann::json do_steps(std::int64_t horizon) const override;
};

class DLinear final : public LinearForecaster {
 public:
  explicit DLinear(const Config& config)
      : LinearForecaster(config), kernel_(config.get<std::int64_t>("kernel_size")) {}

 private:
  nlohmann::json do_steps(std::int64_t horizon) const override;

  std::int64_t kernel_;
};

}  // namespace treadle::forecasting
