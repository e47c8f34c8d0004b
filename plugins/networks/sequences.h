#pragma once

#include <cstdint>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

/// Networks for sequences [B, length, width], or for tokens [B, length].
namespace treadle::networks {

/// Bai et al., "An Empirical Evaluation of Generic Convolutional and Recurrent Networks for
/// Sequence Modeling" (2018): residual blocks of two causal convolutions, each followed by ReLU and
/// dropout; dilation 2^i in block i.
class TemporalConvolutions final : public GraphBuilder {
 public:
  explicit TemporalConvolutions(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::vector<std::int64_t> channels_;
  std::int64_t kernel_;
  double dropout_;
  bool has_weight_norm_;
  bool returns_sequences_;
  bool has_head_;
};

/// Radford et al., "Language Models are Unsupervised Multitask Learners" (GPT-2, 2019): token
/// and learned position embeddings, or rotary positions in each attention; pre-norm blocks with
/// causal attention and GELU; a last norm, and a linear map to the vocabulary, whose weight is that
/// of the token embedding. Weights are N(0, 0.02²) at first, those of maps whose outputs are added
/// to the stream N(0, 0.02² / (2 · layers)), and biases 0. References are those of `attention`:
/// segments of packed documents, lengths, masks.
class Gpt final : public GraphBuilder {
 public:
  explicit Gpt(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t width_;
  std::int64_t layers_;
  std::int64_t heads_;
  std::int64_t feed_forward_;
  std::int64_t max_length_;
  bool is_rotary_;
  double dropout_;
  bool is_tied_;
  bool has_head_;
};

/// Devlin et al., "BERT" (2019): token, position and, where the first reference has them, token
/// type embeddings; post-norm blocks with GELU; a dense layer with tanh of the first position. All
/// weights are N(0, 0.02²) at first.
/// References behind the token types, int64 [B, length], are those of the layer `attention`:
/// lengths or a mask of the padding.
class Bert final : public GraphBuilder {
 public:
  explicit Bert(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t width_;
  std::int64_t layers_;
  std::int64_t heads_;
  std::int64_t feed_forward_;
  std::int64_t positions_;
  std::int64_t types_;
  double dropout_;
  bool has_pooler_;
  bool has_head_;
};

}  // namespace treadle::networks
