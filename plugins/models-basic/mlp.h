#pragma once

#include <memory>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model.h>

namespace treadle::models {

using Activation = at::Tensor (*)(at::Tensor values);

enum class Norm { kNone, kBatch, kLayer };

/// The shape of a multilayer perceptron, apart from its input and output.
struct MlpShape {
  std::vector<std::int64_t> hidden;
  Activation activation = nullptr;  ///< not null when there are hidden layers
  double dropout = 0;
  Norm norm = Norm::kNone;
  std::size_t recompute_layers = 0;  ///< hidden layers computed again together in backward; 0: none
};

/// Fully connected layers: each hidden one is linear, norm, activation, dropout; the last is
/// linear.
///
/// Takes one port of any shape and flattens it to [B, features], or several of one dimension, which
/// it puts beside each other; gives [B, positions..., width] for each output.
/// Parameters are named `layers.<i>.weight` [out, in] and `layers.<i>.bias` [out], of normed layers
/// also `norms.<i>.weight` and `norms.<i>.bias`, counted from 0; batch norm adds the buffers
/// `norms.<i>.running_mean` and `norms.<i>.running_var`. Initial values are PyTorch's: uniform in
/// +-1/sqrt(in) for layers, ones and zeros for norms.
class MlpModel final : public Model {
 public:
  /// Expects a spec that expect_numbers() accepted.
  MlpModel(const MlpShape& shape, const ModelSpec& spec);
  ~MlpModel() override;

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override;

 private:
  struct Layer;
  struct BatchNorm;
  struct LayerNorm;

  at::Tensor hidden_layer(std::size_t index, const at::Tensor& values) const;
  at::Tensor hidden_layers(std::size_t begin, std::size_t end, at::Tensor values) const;

  MlpShape shape_;
  at::Tensor features_of(const Inputs& inputs) const;

  std::vector<std::size_t> ports_;  // those that it takes
  std::int64_t features_ = 0;
  std::vector<std::int64_t> output_sizes_;  // elements of a row
  std::vector<std::vector<std::int64_t>>
      output_shapes_;  // {-1, shape...}; empty for rows of numbers
  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<std::shared_ptr<BatchNorm>> batch_norms_;  // one of the two is empty
  std::vector<std::shared_ptr<LayerNorm>> layer_norms_;
};

/// Throws the DataError that says why `model` cannot take the inputs or give the outputs, and what
/// to do: it takes numbers, none of them missing, and knows nothing of sizes that vary.
void expect_numbers(const std::string& model, const ModelSpec& spec);

class Mlp final : public ModelProvider {
 public:
  explicit Mlp(const Config& config);

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override;

  MlpShape shape_;
};

class Linear final : public ModelProvider {
 public:
  explicit Linear(const Config& config);

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override;
};

}  // namespace treadle::models
