#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

namespace treadle::forecasting {

/// The Temporal Fusion Transformer of Lim et al. (2021): variable selection, an lstm over the
/// lookback and the horizon, static enrichment, interpretable attention. See
/// temporal_fusion_layers.h.
///
/// The stream is the lookback, numbers [B, steps, columns]; references, in the order of "inputs",
/// are what else `windows` makes: "future" [B, horizon, columns], "static" [B, columns], and
/// categories of each. The forecast has the positions and the width that the loss requires: other
/// than channels of the input, it may have any number of quantiles of any targets.
///
/// Differences from the authors' code: dropout of the attention's weights is drawn for each head,
/// and that behind the heads is left out, as in the paper.
class TemporalFusionTransformer final : public GraphBuilder {
 public:
  explicit TemporalFusionTransformer(const Config& config);

 private:
  std::int64_t horizon_of(const LayerSpec& spec) const;
  nlohmann::json input_tags() const;
  void expect_inputs(const LayerSpec& spec, std::int64_t horizon) const;
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::vector<std::string> inputs_;
  std::int64_t width_;
  std::int64_t heads_;
  std::int64_t lstm_layers_;
  double dropout_;
};

}  // namespace treadle::forecasting
