#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>

namespace treadle::transformers {

/// Tags of what the layers of a network take beside their stream.
using Tags = std::vector<std::string>;

/// Blocks of Vaswani et al., "Attention Is All You Need" (2017), as steps of a flow; names of nodes
/// are those of torch.nn.TransformerEncoderLayer and TransformerDecoderLayer. With f an attention
/// or the feed-forward network, each followed by dropout:
///
///     x = norm(x + f(x))     post-norm, the paper's
///     x = x + f(norm(x))     pre-norm ("norm_first"); Xiong et al., "On Layer Normalization in the
///                            Transformer Architecture" (2020)
class Blocks {
 public:
  /// `config`: the keys that all three builders have.
  explicit Blocks(const Config& config);

  /// A stack of `layers` encoder blocks for streams of this width: self-attention, feed-forward.
  /// `masks`: the references of the attention.
  nlohmann::json encoder(std::int64_t layers, std::int64_t width, bool is_causal,
                         const Tags& masks) const;
  /// A stack of decoder blocks: self-attention, attention to `memory`, feed-forward.
  /// `memory_masks`: the references of the second attention.
  nlohmann::json decoder(std::int64_t layers, std::int64_t width, bool is_causal, const Tags& masks,
                         const std::string& memory, const Tags& memory_masks) const;

  /// A norm at the end of a stack.
  nlohmann::json norm(const std::string& name) const;
  bool is_norm_first() const { return norm_first_; }

 private:
  nlohmann::json self_attention(bool is_causal, const Tags& masks) const;
  nlohmann::json cross_attention(const Tags& references) const;
  nlohmann::json feed_forward(std::int64_t width) const;
  /// How the weights of a layer begin.
  void put_init(nlohmann::json& step) const;
  void add_sublayer(nlohmann::json& steps, nlohmann::json body) const;

  std::int64_t heads_;
  std::optional<std::int64_t> kv_heads_;
  std::optional<std::int64_t> head_dim_;
  std::optional<std::int64_t> feed_forward_;
  std::optional<std::int64_t> window_;
  nlohmann::json rotary_;  // null: none
  double dropout_;
  std::string activation_;
  bool norm_first_;
  std::string norm_;
  bool bias_;
  std::optional<double> init_std_;
  std::optional<double> residual_init_std_;
};

/// {"use": "input", "names": tags}, in front of the steps that use them; nothing without tags.
void add_inputs(nlohmann::json& steps, const Tags& tags);

}  // namespace treadle::transformers
