#pragma once

#include <cstdint>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

/// Networks for tables, as flows of layers that any plugin may offer.
namespace treadle::tabular {

/// The columns of a table as one input of any network: numbers [B, F] and categories [B, K] int64,
/// the stream and its reference in either order, or one of them alone. Each category has a learned
/// vector, N(0, 1/(3 embedding_dim)) at first, which has the spread of the tokens of numbers in
/// Gorishniy et al., "Revisiting Deep Learning Models for Tabular Data" (2021), section 3.3.
///
/// Numbers go through the steps "numbers". With "tokens", [B, F + K, embedding_dim], a vector for
/// each column; else [B, width], everything beside each other.
class TableEmbedding final : public GraphBuilder {
 public:
  explicit TableEmbedding(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;
  void add_columns(nlohmann::json& steps, const TensorSpec& columns) const;

  std::int64_t embedding_dim_;
  bool makes_tokens_;
  nlohmann::json numbers_;  // steps
};

/// For rows of numbers [B, F]: TabNet of Arik and Pfister (2021), in the form of the package
/// pytorch-tabnet. Each step chooses features by a sparse mask, from what the step before passed
/// on, and turns the masked features by gated linear units, of which the first are the same in all
/// steps; the sum of what the steps decide goes to the head.
class TabNet final : public GraphBuilder {
 public:
  explicit TabNet(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;
  nlohmann::json norm(const std::string& name) const;
  void add_feature_transformer(nlohmann::json& steps, const std::string& name) const;
  void add_mask(nlohmann::json& steps, std::int64_t step, std::int64_t features) const;

  std::int64_t decision_width_;
  std::int64_t attention_width_;
  std::int64_t steps_;
  double relaxation_;
  std::int64_t independent_;
  std::int64_t shared_;
  double sparsity_;
  std::string mask_;  // a layer's name
  std::int64_t virtual_batch_size_;
  double momentum_;
  bool has_head_;
};

/// For tables of numbers and categories, as TableEmbedding takes them: SAINT of Somepalli et al.
/// (2021). A vector for each column and a class token; blocks of attention between the columns of a
/// row and of attention between rows; a hidden layer and a head on the class token.
class Saint final : public GraphBuilder {
 public:
  explicit Saint(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t width_;
  std::int64_t layers_;
  std::int64_t heads_;
  std::int64_t feed_forward_;
  std::int64_t row_head_dim_;
  std::int64_t row_feed_forward_;  // 0: as wide as a row
  std::int64_t references_;
  std::int64_t hidden_;
  double dropout_;
  bool has_head_;
};

}  // namespace treadle::tabular
