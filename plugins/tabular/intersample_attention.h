#pragma once

#include <cstdint>

#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/layer.h>

namespace treadle::tabular {

/// Attention between rows: [B, width] to [B, width], softmax(Q Kᵀ / √d) V for each head, all heads
/// side by side, and a linear map. Somepalli et al., "SAINT: Improved Neural Networks for Tabular
/// Data via Row Attention and Contrastive Pre-Training" (2021), section 3.3.
///
/// In training the keys are the rows of the batch; with shards, of each shard. In evaluation the
/// keys of a row are the row itself and the rows that training has stored, so that a prediction
/// depends on no other row that is predicted. They are stored as this layer is given them, not yet
/// mapped: a step later the layers before it are a step older. Before any training a row looks at
/// itself alone.
///
/// "in_weight" [3 · heads · d, width]: queries, keys, values one below the other; "out_weight"
/// [width, heads · d]; "out_bias" [width]. Buffers: "references" [references, width], the last rows
/// of the training, the newest last; "reference_count" int64 [1], how many they are so far.
class IntersampleAttention final : public Layer, public GathersStatistics {
 public:
  IntersampleAttention(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  void begin_gathering() override;
  void end_gathering() override {}

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override { return inputs.front(); }

  /// [n, heads · d] to [heads, n, d].
  at::Tensor split(const at::Tensor& rows) const;
  at::Tensor among_rows(const at::Tensor& queries, const at::Tensor& keys,
                        const at::Tensor& values) const;
  at::Tensor among_references(const at::Tensor& queries, const at::Tensor& keys,
                              const at::Tensor& values) const;
  void store(const at::Tensor& rows);

  std::int64_t heads_;
  std::int64_t head_dim_;
  double dropout_;
  at::Tensor in_weight_;
  at::Tensor out_weight_;
  at::Tensor out_bias_;
  at::Tensor references_;
  at::Tensor count_;
};

}  // namespace treadle::tabular
