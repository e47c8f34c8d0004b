#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/layer.h>

#include "stream.h"

namespace treadle::softmax {

/// softmax(z / temperature) along a dimension: sharper below 1, flatter above.
class TemperatureSoftmax final : public Layer {
 public:
  TemperatureSoftmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t dim_;
  double temperature_;
};

/// Numbers [..., rows · cols] as [..., rows, cols], and a softmax of each row of this grid.
class GridSoftmax final : public Layer {
 public:
  GridSoftmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t rows_;
  std::int64_t cols_;
};

/// The leaves of a tree whose nodes of level i have levels[i] children each, [..., l1 · l2 · ...].
/// The probability of a leaf is the product of those on its path, so the leaves sum to 1; Morin &
/// Bengio, "Hierarchical Probabilistic Neural Network Language Model" (2005).
///
/// The input has a logit for each node but the root, level by level, siblings beside each other:
/// [..., l1 + l1 · l2 + ...]. With "last_level" it has those of the leaves alone, which sum to 1
/// among siblings.
class TreeSoftmax final : public Layer {
 public:
  TreeSoftmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::vector<std::int64_t> levels_;
  std::vector<std::int64_t> nodes_;  // of each level
  bool only_last_level_;
};

/// softmax((z + g) / temperature) with g = -log(-log(u)), u uniform in (0, 1), drawn for each
/// number in training from the task's stream; in evaluation g = 0. Jang, Gu & Poole, "Categorical
/// Reparameterization with Gumbel-Softmax" (2017).
///
/// Hard: 1 at the largest and 0 elsewhere, with the gradient of the soft numbers, as
/// torch.nn.functional.gumbel_softmax has it.
class GumbelSoftmax final : public Layer, public DrawsInTraining {
 public:
  GumbelSoftmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t dim_;
  double temperature_;
  bool is_hard_;
};

/// A softmax over the numbers whose mask is true; the others become 0, and all of them where none
/// is true. Masks: n booleans in the document, and references, bool, each [B, n] for rows of
/// n numbers along `dim`, or of the shape of the stream.
class MaskedSoftmax final : public Layer, public TakesIndices {
 public:
  MaskedSoftmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  bool takes_indices(std::size_t index) const override { return index > 0; }

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override { return inputs.front(); }
  at::Tensor beside_stream(const at::Tensor& mask, const at::Tensor& stream) const;

  std::int64_t dim_;
  at::Tensor fixed_;  // bool [n], a buffer; undefined where the document has none
};

/// simplex.h: sparsemax()
class Sparsemax final : public Layer {
 public:
  Sparsemax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t dim_;
};

/// simplex.h: entmax()
class Entmax final : public Layer {
 public:
  Entmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t dim_;
  double alpha_;
};

/// sum over k of pi_k softmax(z_k), K = num_components. Yang et al., "Breaking the Softmax
/// Bottleneck" (2018). [..., width] to [..., n].
///
/// With "out_features", n of them, everything comes from the stream h: pi = softmax(W_gate h + b),
/// z_k = W tanh(W_k h + b_k) + b, as in the paper. Without, the stream is K blocks of n logits, and
/// pi = softmax of a reference [..., K], or of the parameter "mixing" [K], zeros at first.
class MixtureSoftmax final : public Layer {
 public:
  MixtureSoftmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t components_;
  at::Tensor mixing_;  // without out_features and reference
  at::Tensor gate_weight_;
  at::Tensor gate_bias_;
  at::Tensor latent_weight_;  // [K · width, width]
  at::Tensor latent_bias_;
  at::Tensor out_weight_;  // [n, width]
  at::Tensor out_bias_;
};

}  // namespace treadle::softmax
