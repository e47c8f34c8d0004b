#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/layer.h>

/// The parts of the Temporal Fusion Transformer: Lim et al., "Temporal Fusion Transformers for
/// Interpretable Multi-horizon Time Series Forecasting" (2021), section 4, equation numbers as
/// there. A context is one vector for each window, [B, width], the same at every step.
namespace treadle::forecasting {

/// Weights of x W^T + b: "<name>_weight" [out, in] and "<name>_bias" [out], as torch.nn.Linear.
struct LinearMap {
  at::Tensor weight;
  at::Tensor bias;  ///< undefined: without one

  at::Tensor operator()(const at::Tensor& x) const;
};

/// The weights of a gated residual network, equations (2) to (5), of the last dimension:
///
///     x, context  ->  norm(skip(x) + glu(gate(drop(fc2(elu(fc1(x) + context))))))
///
/// `skip` is a linear map where the widths differ. "fc1", "fc2", "gate", "context" (without a
/// bias), "skip", "norm".
struct GatedResidual {
  LinearMap fc1;
  LinearMap fc2;
  LinearMap gate;
  LinearMap context;  ///< undefined: it takes none
  LinearMap skip;     ///< undefined where the widths are the same
  LinearMap norm;

  /// `given`: the context; not read where it takes none. Dropout 0 in evaluation.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& given, double dropout) const;
};

/// A layer of one such network.
class GatedResidualNetwork final : public Layer, public DrawsInTraining {
 public:
  GatedResidualNetwork(const Config& config, const LayerSpec& spec);

  /// The stream [B, ..., in], and a context as the reference where there is one.
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  bool draws_in_training() const override { return dropout_ > 0; }

 private:
  double dropout_;
  GatedResidual network_;
};

/// A gated residual connection, norm(reference + glu(gate(drop(x)))): equation (17) and its like.
/// The stream [B, ..., in] and the reference [B, ..., width] to [B, ..., width]. "gate", "norm".
class GatedAddNorm final : public Layer, public DrawsInTraining {
 public:
  GatedAddNorm(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  bool draws_in_training() const override { return dropout_ > 0; }

 private:
  double dropout_;
  LinearMap gate_;
  LinearMap norm_;
};

/// Variable selection, equations (6) to (8): of the vectors of some variables, [B, ..., variables,
/// width], their mean [B, ..., width], weighted by a softmax that depends on all of them and on the
/// context, where one is the reference. Each variable goes through a gated residual network of its
/// own before. Further output "weights": [B, ..., variables].
///
/// "weights_*" are those of the network that computes the weights, from [variables * width];
/// "variables_*" those of the variables' networks, one below the other: [variables, out, in].
class VariableSelection final : public Layer,
                                public NamesOutputs,
                                public DrawsInTraining,
                                public NamesParameterRoles {
 public:
  VariableSelection(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> output_names() const override { return {"weights"}; }
  bool draws_in_training() const override { return dropout_ > 0; }
  Roles parameter_roles() const override;

 private:
  double dropout_;
  GatedResidual of_weights_;
  GatedResidual of_variables_;  // each map is one for each variable
};

/// An lstm over the lookback [B, steps, width], the stream, and another, which goes on from its
/// last state, over the horizon [B, horizon, width], the first reference: the states of all steps,
/// [B, steps + horizon, width]. Contexts as second and third reference are the hidden and the cell
/// state that the first begins with; without them it begins with zeros. Section 4.5.1. Where
/// gradients end at every step of time it runs step by step.
///
/// "encoder_weight_ih_l0", "decoder_weight_ih_l0" and so on, as torch.nn.LSTM.
class LstmEncoderDecoder final : public Layer, public DrawsInTraining {
 public:
  LstmEncoderDecoder(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  bool draws_in_training() const override { return layers_ > 1 && dropout_ > 0; }

 private:
  std::vector<at::Tensor> weights_of(const std::string& name, std::int64_t width,
                                     c10::ScalarType dtype);

  std::int64_t layers_;
  double dropout_;
  std::vector<at::Tensor> encoder_;
  std::vector<at::Tensor> decoder_;
};

/// Interpretable multi-head attention, equations (13) to (16): heads have queries and keys of their
/// own and share the values, so the mean of their weights tells what the forecast looks at. The
/// last `queries` of [B, T, width] look at themselves and the steps before: to [B, queries, width].
/// Further output "attention": that mean, [B, queries, T].
///
/// "query_weight" and "key_weight" [width, width], "value_weight" [width / heads, width],
/// "out_weight" [width, width / heads], without biases as in the authors' code.
class InterpretableAttention final : public Layer, public NamesOutputs, public DrawsInTraining {
 public:
  InterpretableAttention(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> output_names() const override { return {"attention"}; }
  bool draws_in_training() const override { return dropout_ > 0; }

 private:
  std::int64_t heads_;
  std::int64_t queries_;
  double dropout_;
  at::Tensor query_weight_;
  at::Tensor key_weight_;
  at::Tensor value_weight_;
  at::Tensor out_weight_;
};

}  // namespace treadle::forecasting
