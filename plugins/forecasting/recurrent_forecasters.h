#pragma once

#include <cstdint>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

namespace treadle::forecasting {

struct GruName {
  static constexpr const char* kLayer = "gru";
};
struct LstmName {
  static constexpr const char* kLayer = "lstm";
};

/// A recurrent network over a window [B, steps, channels], and a head that computes all steps of
/// the horizon from its last state: whatever the loss requires, quantiles and distributions too.
/// All channels see each other. Layers, dropout between them and weights are those of torch.nn.GRU
/// and LSTM.
///
/// Direct forecasts rather than step by step: Ben Taieb et al., "A review and comparison of
/// strategies for multi-step ahead time series forecasting" (2012).
class RecurrentNetwork : public GraphBuilder {
 public:
  ~RecurrentNetwork() override;

 protected:
  RecurrentNetwork(const Config& config, std::string layer);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const final;

  std::string layer_;
  std::int64_t hidden_size_;
  std::int64_t layers_;
  double dropout_;
};

template <typename Name>
class RecurrentForecaster final : public RecurrentNetwork {
 public:
  explicit RecurrentForecaster(const Config& config) : RecurrentNetwork(config, Name::kLayer) {}
};

}  // namespace treadle::forecasting
