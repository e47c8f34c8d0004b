#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

/// Networks that people want as a whole. They write flows of layers that any plugin may offer.
namespace treadle::model_graphs {

/// For tables: a dense layer, residual blocks, a head. Source: the ResNet of Gorishniy et al.,
/// "Revisiting Deep Learning Models for Tabular Data" (2021), section 3.2.
class ResidualMlp final : public GraphBuilder {
 public:
  explicit ResidualMlp(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t blocks_;
  std::int64_t width_;
  std::int64_t hidden_;
  double dropout_;
  std::string norm_;
  std::string activation_;
  bool has_head_;
};

/// For images and sequences: stages of convolutions, each of which halves the picture, and the mean
/// over what is left of it. Source: Simonyan and Zisserman, "Very Deep Convolutional Networks"
/// (2015), with batch normalization, and the mean in place of their dense layers.
class ConvNet final : public GraphBuilder {
 public:
  explicit ConvNet(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::vector<std::int64_t> channels_;
  std::int64_t depth_;
  std::int64_t kernel_;
  std::string norm_;
  std::string activation_;
  bool has_head_;
};

/// Cells in rows and columns, each the same layers with weights of its own, one cell after the
/// other, row by row. Layer l of the cell in row r and column c is the node "cells.r.c.l", and may
/// be replaced by another.
class Grid final : public GraphBuilder {
 public:
  explicit Grid(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t rows_;
  std::int64_t columns_;
  nlohmann::json cell_;
  std::map<std::array<std::int64_t, 3>, nlohmann::json> replaced_;  // by [row, column, layer]
};

}  // namespace treadle::model_graphs
