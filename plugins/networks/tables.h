#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

namespace treadle::networks {

/// Dense layers, each followed by a norm, an activation and dropout, as far as wanted, and a head.
class Mlp final : public GraphBuilder {
 public:
  explicit Mlp(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::vector<std::int64_t> hidden_;
  std::string activation_;
  std::string norm_;  // a layer's name; empty: none
  double dropout_;
  bool has_head_;
};

/// For tables [B, features]: TabM of Gorishniy, Kotelnikov and Babenko, "TabM: Advancing Tabular
/// Deep Learning with Parameter-Efficient Ensembling" (2025): an ensemble of MLPs that share most
/// of their weights, with a head for each member. The loss `ensemble` says how many there are and
/// requires outputs of all of them.
///
/// Blocks are a batch ensemble, a ReLU and dropout; of the variant "tabm-mini" only what the first
/// layer is given is scaled, and all members have the same blocks. Names and initial values are
/// those of the package `tabm`.
class TabM final : public GraphBuilder {
 public:
  explicit TabM(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  bool is_mini_;
  std::int64_t layers_;
  std::int64_t width_;
  double dropout_;
  std::string scaling_init_;
};

/// For tables: the FT-Transformer of Gorishniy et al., "Revisiting Deep Learning Models for Tabular
/// Data" (2021), section 3.3: a vector for each feature, a class token, pre-norm blocks with ReGLU;
/// norm, ReLU and a linear map of the class token. Features are numbers [B, F], categories [B, K]
/// int64, or both: the stream and its reference, in either order.
class FtTransformer final : public GraphBuilder {
 public:
  explicit FtTransformer(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t width_;
  std::int64_t layers_;
  std::int64_t heads_;
  std::int64_t feed_forward_;
  double dropout_;
  bool has_head_;
};

}  // namespace treadle::networks
