#pragma once

#include <cstdint>
#include <optional>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

#include "blocks.h"

/// Transformers as flows of layers that any plugin may offer. Streams are sequences [B, T, width],
/// and so are results.
namespace treadle::transformers {

/// torch.nn.TransformerEncoder. References are those of the layer `attention`: lengths, masks,
/// segments, biases.
class TransformerEncoder final : public GraphBuilder {
 public:
  explicit TransformerEncoder(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  Blocks blocks_;
  std::int64_t layers_;
  bool is_causal_;
  bool final_norm_;
};

/// torch.nn.TransformerDecoder. The stream is the target; the first reference of numbers,
/// [B, S, …], the memory. One description of padding is the memory's; of two, the first is the
/// target's. Segments come in twos: the target's, the memory's.
class TransformerDecoder final : public GraphBuilder {
 public:
  explicit TransformerDecoder(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  Blocks blocks_;
  std::int64_t layers_;
  bool is_causal_;
  bool final_norm_;
};

/// torch.nn.Transformer: an encoder of the source, which is the stream, and a causal decoder of the
/// target, the first reference of numbers [B, T, …]. One description of padding is the source's; of
/// two, the second is the target's. Segments come in twos: the source's, the target's.
class Transformer final : public GraphBuilder {
 public:
  explicit Transformer(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  Blocks blocks_;
  std::int64_t encoder_layers_;
  std::int64_t decoder_layers_;
  bool final_norm_;
};

}  // namespace treadle::transformers
