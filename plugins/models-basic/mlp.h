#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/model.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/part.h>

namespace treadle::models {

/// The shape of a multilayer perceptron, apart from its input and output.
struct MlpShape {
  std::vector<std::int64_t> hidden = {};
  std::optional<graph::Part> activation = {};  ///< there when there are hidden layers
  double dropout = 0;
  std::optional<graph::Part> norm = {};
  std::size_t recompute_layers = 0;  ///< hidden layers computed again together in backward; 0: none
};

/// Fully connected layers: each hidden one is linear, norm, activation, dropout; the last is
/// linear.
///
/// A flow of the layers in mlp_layers.h. Takes one port of any shape and flattens it to
/// [B, features], or several of one dimension, which it puts beside each other; gives
/// [B, positions..., width] for each output.
///
/// Parameters are named `layers.<i>.weight` [out, in] and `layers.<i>.bias` [out], of normed layers
/// also `norms.<i>.weight` and `norms.<i>.bias`, counted from 0; batch norm adds the buffers
/// `norms.<i>.running_mean` and `norms.<i>.running_var`. Initial values are PyTorch's: uniform in
/// +-1/sqrt(in) for layers, ones and zeros for norms.
class Mlp final : public ModelProvider {
 public:
  explicit Mlp(const Config& config);

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override;

  MlpShape shape_;
  graph::Execution execution_;
};

/// The last layer alone.
class Linear final : public ModelProvider {
 public:
  explicit Linear(const Config& config);

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override;

  graph::Execution execution_;
};

}  // namespace treadle::models
