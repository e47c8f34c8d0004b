#pragma once

#include <cstdint>

#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/layer.h>

#include "stream.h"

/// Vectors for numbers: each feature of a row becomes as many numbers as a network can work with.
/// Gorishniy, Rubachev and Babenko, "On Embeddings for Numerical Features in Tabular Deep Learning"
/// (2022). All take rows [B, features] and give [B, features, width], or flattened.
namespace treadle::layers {

/// What is behind the encoding of each feature: nothing, or a linear map with "weight" [features,
/// in, embedding_dim] and "bias" [features, embedding_dim], and maybe a ReLU. `lite` is one map for
/// all features: "weight" [embedding_dim, in], "bias" [embedding_dim]. Uniform within
/// ±1 / sqrt(in) at first, as torch.nn.Linear.
class NumericEmbedding : public Layer, public NamesParameterRoles {
 public:
  static void check(const Config& config);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) final;
  Roles parameter_roles() const override { return all(ParameterRole::kTable, {weight_, bias_}); }

 protected:
  NumericEmbedding(const Config& config, const LayerSpec& spec);

  std::int64_t features() const { return features_; }
  /// The derived class calls it last in its constructor: the order of parameters is that of use.
  void add_linear(const Config& config, const LayerSpec& spec, std::int64_t in);

 private:
  /// [B, features] to [B, features, in]
  virtual at::Tensor encoded(const at::Tensor& x) const = 0;

  std::int64_t features_;
  bool lite_ = false;
  bool has_relu_ = false;
  bool flatten_;
  at::Tensor weight_;  // undefined: the encoding is the result
  at::Tensor bias_;
};

/// [cos v, sin v] of v = 2π c x, where "frequencies" c [features, n_frequencies] are learned, N(0,
/// sigma²) at first. With a linear map and a ReLU behind it, that is PLR; with `lite`, PLR(lite).
class PeriodicEmbedding final : public NumericEmbedding {
 public:
  PeriodicEmbedding(const Config& config, const LayerSpec& spec);
  Roles parameter_roles() const override;

 private:
  at::Tensor encoded(const at::Tensor& x) const override;

  at::Tensor frequencies_;
};

/// How far x is through each bin from b_(t-1) to b_t, for t = 1 to T: (x - b_(t-1)) / (b_t -
/// b_(t-1)), at least 0 except in the first bin, and at most 1 except in the last. Linear in x
/// beyond both ends. Features with fewer bins than others have zeros behind theirs.
///
/// Buffers [features, bins]: "left" b_(t-1), "widths" b_t - b_(t-1), "least" and "most".
class PiecewiseLinearEmbedding final : public NumericEmbedding {
 public:
  static void check(const Config& config);
  PiecewiseLinearEmbedding(const Config& config, const LayerSpec& spec);

 private:
  at::Tensor encoded(const at::Tensor& x) const override;

  at::Tensor left_;
  at::Tensor widths_;
  at::Tensor least_;
  at::Tensor most_;
};

}  // namespace treadle::layers
