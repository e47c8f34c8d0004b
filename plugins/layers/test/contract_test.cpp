// Every layer keeps what LayerContract asks, gradients by finite differences
// among it.
#include <treadle/testing/model/layer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

#include "recurrent_by_hand.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using Shapes = std::vector<std::vector<std::int64_t>>;

const Shapes kRows{{6}};
const Shapes kSequences{{5, 6}};
const Shapes kChannels{{4, 7}};   // [B, channels, length]
const Shapes kImages{{4, 6, 5}};  // [B, channels, height, width]
const Shapes kVolumes{{2, 4, 3, 4}};

LayerCase layer(std::string name, const std::string& component, Json parameters = Json::object(),
                Shapes inputs = kRows) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  LayerCase one;
  one.name = std::move(name);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin.make<LayerFactory>(component, parameters);
  };
  one.inputs = std::move(inputs);
  return one;
}

const Json kDense{{"use", "dense"}, {"out_features", 3}};
const Json kConv{{"use", "conv1d"}, {"out_channels", 3}, {"kernel_size", 3}};
const Json kTransposedConv{{"use", "conv_transpose2d"}, {"out_channels", 2}, {"kernel_size", 2}};

LayerCase in_training(LayerCase one) {
  one.training_differs = true;
  return one;
}

LayerCase of_categories(LayerCase one) {
  one.categories = 4;
  return one;
}

/// Sequences of five, with their lengths or mask as the last reference.
LayerCase with_padding(LayerCase one, Role role = Role::kLengths) {
  one.roles.resize(one.inputs.size(), Role::kFeatures);
  one.roles.push_back(role);
  one.inputs.push_back(role == Role::kLengths ? std::vector<std::int64_t>{}
                                              : std::vector<std::int64_t>{5});
  return one;
}

/// Sequences of five, each position of one of three documents, as the last reference.
LayerCase with_segments(LayerCase one) {
  one.categories = 3;
  one.roles.resize(one.inputs.size(), Role::kFeatures);
  one.roles.push_back(Role::kSegments);
  one.inputs.push_back({5});
  return one;
}

LayerCase step_by_step(LayerCase one) {
  one.is_step_by_step = true;
  return one;
}

/// Its last reference is a mask.
LayerCase masked_by(LayerCase one, std::vector<std::int64_t> mask) {
  one.roles.resize(one.inputs.size(), Role::kFeatures);
  one.roles.push_back(Role::kMask);
  one.inputs.push_back(std::move(mask));
  return one;
}

/// Steps, whose slopes are not those of gradients that are straight-through.
LayerCase stepped(LayerCase one) {
  one.is_differentiable = false;
  return one;
}

/// With scales of the whole batch.
LayerCase scaled_together(LayerCase one) {
  one.works_row_by_row = false;
  return stepped(std::move(one));
}

LayerCase to(LayerCase one, std::vector<std::int64_t> positions) {
  one.output_positions = std::move(positions);
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Dense, LayerContract,
    ::testing::Values(layer("Rows", "dense", {{"out_features", 3}}),
                      layer("Sequences", "dense", {{"out_features", 3}}, kSequences),
                      layer("WithoutBias", "dense", {{"out_features", 3}, {"bias", false}}),
                      layer("Kaiming", "dense", {{"out_features", 3}, {"init", "kaiming"}}),
                      layer("Orthogonal", "dense", {{"out_features", 3}, {"init", "orthogonal"}}),
                      layer("Normal", "dense", {{"out_features", 3}, {"init", "normal"}}),
                      layer("Head", "head"), to(layer("HeadOfSteps", "head", {}, kSequences), {5}),
                      to(layer("HeadOfVaryingSteps", "head", {}, {{kVaries, 6}}), {kVaries}),
                      to(layer("HeadOfPixels", "head", {}, kImages), {6, 5}),
                      to(layer("HeadOfPixelsLast", "head", {{"channels", "last"}}, {{6, 5, 4}}),
                         {6, 5})),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    NarrowLinear, LayerContract,
    ::testing::Values(
        scaled_together(layer("Fp8", "fp8_linear", {{"out_features", 3}})),
        scaled_together(layer("Fp8Sequences", "fp8_linear", {{"out_features", 3}}, kSequences)),
        stepped(layer("Fp8Rowwise", "fp8_linear", {{"out_features", 3}, {"recipe", "rowwise"}})),
        scaled_together(layer("NvFp4", "nvfp4_linear", {{"out_features", 3}})),
        scaled_together(layer("NvFp4Sequences", "nvfp4_linear",
                              {{"out_features", 3}, {"bias", false}}, kSequences))),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Convolutions, LayerContract,
    ::testing::Values(
        layer("CausalConv1d", "conv1d",
              {{"out_channels", 3}, {"kernel_size", 3}, {"dilation", 2}, {"padding", "causal"}},
              kChannels),
        layer("Conv1d", "conv1d", {{"out_channels", 3}, {"kernel_size", 3}}, kChannels),
        layer("Conv2d", "conv2d",
              {{"out_channels", 3}, {"kernel_size", {3, 2}}, {"stride", 2}, {"padding", 1}},
              kImages),
        layer("Conv2dSame", "conv2d",
              {{"out_channels", 2}, {"kernel_size", 3}, {"padding", "same"}, {"dilation", 2}},
              kImages),
        layer("Conv2dGroups", "conv2d",
              {{"out_channels", 4}, {"kernel_size", 2}, {"groups", 2}, {"bias", false}}, kImages),
        layer("Conv3d", "conv3d", {{"out_channels", 2}, {"kernel_size", 2}}, kVolumes),
        layer("ConvTranspose1d", "conv_transpose1d",
              {{"out_channels", 2}, {"kernel_size", 3}, {"stride", 2}}, kChannels),
        layer("ConvTranspose2d", "conv_transpose2d",
              {{"out_channels", 2},
               {"kernel_size", 3},
               {"stride", 2},
               {"padding", 1},
               {"output_padding", 1}},
              kImages),
        layer("ConvTranspose3d", "conv_transpose3d", {{"out_channels", 2}, {"kernel_size", 2}},
              kVolumes)),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Pooling, LayerContract,
    ::testing::Values(
        layer("Max1d", "max_pool1d", {{"kernel_size", 2}}, kChannels),
        layer("Max2d", "max_pool2d", {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}}, kImages),
        layer("Average1d", "avg_pool1d", {{"kernel_size", 3}, {"stride", 1}}, kChannels),
        layer("Average2d", "avg_pool2d", {{"kernel_size", {2, 1}}}, kImages),
        layer("AdaptiveMax1d", "adaptive_max_pool1d", {{"output_size", 3}}, kChannels),
        layer("AdaptiveMax2d", "adaptive_max_pool2d", {{"output_size", 2}}, kImages),
        layer("AdaptiveAverage1d", "adaptive_avg_pool1d", {{"output_size", 2}}, kChannels),
        layer("AdaptiveAverage2d", "adaptive_avg_pool2d", {{"output_size", {1, 2}}}, kImages),
        layer("AdaptiveAverageOfAll", "adaptive_avg_pool2d", {{"output_size", 1}}, kImages)),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Norms, LayerContract,
    ::testing::Values(in_training(layer("BatchOfRows", "batch_norm")),
                      in_training(layer("BatchOfImages", "batch_norm", {}, kImages)),
                      layer("Layer", "layer_norm", {}, kSequences),
                      layer("LayerPlain", "layer_norm", {{"affine", false}}),
                      layer("Rms", "rms_norm"), layer("RmsOfSequences", "rms_norm", {}, kSequences),
                      layer("GroupOfRows", "group_norm", {{"num_groups", 3}}),
                      layer("Group", "group_norm", {{"num_groups", 2}}, kImages),
                      layer("GroupOfOne", "group_norm", {{"num_groups", 4}, {"affine", false}},
                            kChannels),
                      layer("Instance", "instance_norm", {}, kImages),
                      layer("InstanceOfChannels", "instance_norm", {{"affine", true}}, kChannels)),
    CaseName());

INSTANTIATE_TEST_SUITE_P(Dropout, LayerContract,
                         ::testing::Values(in_training(layer("Elements", "dropout")),
                                           in_training(layer("Channels", "feature_dropout", {},
                                                             kImages)),
                                           in_training(layer("Alpha", "alpha_dropout")),
                                           layer("OfNothing", "dropout", {{"p", 0}})),
                         CaseName());

INSTANTIATE_TEST_SUITE_P(
    Embeddings, LayerContract,
    ::testing::Values(
        of_categories(layer("Indices", "embedding", {{"num_embeddings", 4}, {"embedding_dim", 3}})),
        of_categories(layer("Columns", "embedding",
                            {{"num_embeddings", {4, 5}}, {"embedding_dim", 3}}, {{2}})),
        layer("BatchEnsembleDense", "batch_ensemble_dense",
              {{"members", 3}, {"out_features", 4}, {"scaling_init", "random_signs"}}),
        layer("BatchEnsembleDenseOfMembers", "batch_ensemble_dense",
              {{"members", 3}, {"out_features", 4}, {"bias", false}}, {{3, 5}}),
        layer("BatchEnsembleDenseOfInputs", "batch_ensemble_dense",
              {{"members", 2},
               {"out_features", 4},
               {"adapters", "input"},
               {"scaling_init", "normal"}}),
        layer("EnsembleDense", "ensemble_dense", {{"members", 3}, {"out_features", 4}}),
        layer("EnsembleDenseOfMembers", "ensemble_dense",
              {{"members", 3}, {"out_features", 2}, {"bias", false}}, {{3, 5}}),
        layer("WeightNorm", "weight_norm", {{"layer", kDense}}),
        layer("WeightNormOfHead", "weight_norm", {{"layer", "head"}, {"dim", 1}}),
        layer("WeightNormOfConv", "weight_norm", {{"layer", kConv}}, kChannels),
        layer("WeightNormOfTransposedConv", "weight_norm", {{"layer", kTransposedConv}}, kImages),
        in_training(layer("SpectralNorm", "spectral_norm", {{"layer", kDense}})),
        in_training(layer("SpectralNormOfConv", "spectral_norm", {{"layer", kConv}}, kChannels)),
        // Of one output the power iteration ends at once, and so has the slopes of σ.
        layer("SpectralNormOfTransposedConv", "spectral_norm",
              {{"layer", {{"use", "conv_transpose2d"}, {"out_channels", 1}, {"kernel_size", 2}}},
               {"power_iterations", 2}},
              kImages),
        layer("Periodic", "periodic_embedding", {{"n_frequencies", 3}}),
        layer("PeriodicLinear", "periodic_embedding",
              {{"n_frequencies", 3}, {"embedding_dim", 4}, {"activation", false}}),
        layer("Plr", "periodic_embedding", {{"n_frequencies", 3}, {"embedding_dim", 4}}),
        layer("PlrLite", "periodic_embedding",
              {{"n_frequencies", 3}, {"embedding_dim", 4}, {"lite", true}, {"flatten", true}}),
        layer("PiecewiseLinear", "piecewise_linear_embedding", {{"bins", 4}, {"range", {-1, 1}}}),
        layer("PiecewiseLinearOfEdges", "piecewise_linear_embedding",
              {{"bins", {-0.7, 0.1, 0.4}}, {"embedding_dim", 3}}),
        layer("PiecewiseLinearOfFeatures", "piecewise_linear_embedding",
              {{"bins", {{-1, 0, 1}, {-0.5, 0.25}, {-2, -1, 0.5, 1.5}}},
               {"embedding_dim", 3},
               {"activation", true},
               {"flatten", true}},
              {{3}}),
        layer("Positions", "positional_encoding", {}, kSequences),
        layer("PositionsUpTo", "positional_encoding", {{"max_length", 8}}, kSequences),
        layer("PositionsOfVaryingLength", "positional_encoding", {{"max_length", 5}},
              {{kVaries, 6}}),
        with_segments(layer("PositionsOfSegments", "positional_encoding", {}, kSequences)),
        step_by_step(layer("PositionsStepByStep", "positional_encoding", {{"max_length", 7}},
                           kSequences)),
        layer("Sines", "positional_encoding", {{"kind", "sinusoidal"}}, kSequences),
        layer("SinesOfVaryingLength", "positional_encoding", {{"kind", "sinusoidal"}},
              {{kVaries, 5}}),
        with_segments(layer("SinesOfSegments", "positional_encoding", {{"kind", "sinusoidal"}},
                            kSequences)),
        step_by_step(layer("SinesStepByStep", "positional_encoding", {{"kind", "sinusoidal"}},
                           kSequences))),
    CaseName());

/// Whole sequences, with the same in plain operators beside it.
LayerCase recurrent(std::string name, const std::string& component, const Json& parameters) {
  LayerCase one = layer(std::move(name), component, parameters, kSequences);
  one.by_hand = RecurrentByHand(component, parameters);
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Recurrent, LayerContract,
    ::testing::Values(
        layer("RnnCell", "rnn_cell", {{"hidden_size", 3}}, {{6}, {3}}),
        layer("GruCell", "gru_cell", {{"hidden_size", 3}}, {{6}, {3}}),
        layer("LstmCell", "lstm_cell", {{"hidden_size", 3}}, {{6}, {6}}),
        layer("LstmCellOfXavier", "lstm_cell", {{"hidden_size", 3}, {"init", "xavier_normal"}},
              {{6}, {6}}),
        layer("LstmCellAtFirst", "lstm_cell", {{"hidden_size", 3}}, {{6}, {}}),
        recurrent("Rnn", "rnn", {{"hidden_size", 3}}),
        recurrent("RnnBothLast", "rnn",
                  {{"hidden_size", 3},
                   {"num_layers", 2},
                   {"bidirectional", true},
                   {"return_sequences", false}}),
        recurrent("Gru", "gru", {{"hidden_size", 3}, {"bidirectional", true}}),
        recurrent("GruLast", "gru", {{"hidden_size", 3}, {"return_sequences", false}}),
        recurrent("Lstm", "lstm",
                  {{"hidden_size", 3}, {"num_layers", 2}, {"return_sequences", false}}),
        recurrent("LstmBoth", "lstm", {{"hidden_size", 3}, {"bidirectional", true}}),
        recurrent("LstmBothLast", "lstm",
                  {{"hidden_size", 2}, {"bidirectional", true}, {"return_sequences", false}}),
        with_padding(recurrent("RnnOfLengths", "rnn", {{"hidden_size", 3}})),
        with_padding(recurrent("GruOfLengths", "gru",
                               {{"hidden_size", 3}, {"bidirectional", true}})),
        with_padding(recurrent("LstmOfLengths", "lstm",
                               {{"hidden_size", 2},
                                {"num_layers", 2},
                                {"bidirectional", true},
                                {"return_sequences", false}})),
        in_training(recurrent("GruDropout", "gru",
                              {{"hidden_size", 3}, {"num_layers", 2}, {"dropout", 0.5}})),
        in_training(recurrent(
            "LstmBothDropout", "lstm",
            {{"hidden_size", 3}, {"num_layers", 3}, {"bidirectional", true}, {"dropout", 0.5}}))),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Attention, LayerContract,
    ::testing::Values(
        layer("ToItself", "attention", {{"num_heads", 2}}, kSequences),
        layer("Causal", "attention", {{"num_heads", 3}, {"is_causal", true}}, kSequences),
        layer("ToAnother", "attention", {{"bias", false}}, {{5, 6}, {3, 4}}),
        with_padding(layer("OfLengths", "attention", {{"num_heads", 2}}, kSequences)),
        with_padding(layer("OfMasked", "attention", {{"is_causal", true}}, kSequences),
                     Role::kMask),
        with_padding(layer("ToAnotherOfLengths", "attention", {}, {{3, 6}, {5, 4}})),
        in_training(layer("Dropout", "attention", {{"dropout", 0.3}}, kSequences)),
        layer("GroupedHeads", "attention", {{"num_heads", 4}, {"num_kv_heads", 2}, {"head_dim", 2}},
              kSequences),
        layer("GroupedHeadsToAnother", "attention", {{"num_heads", 6}, {"num_kv_heads", 2}},
              {{3, 6}, {5, 4}}),
        layer("Window", "attention", {{"num_heads", 2}, {"window", 1}}, kSequences),
        layer("WindowOfThePast", "attention", {{"is_causal", true}, {"window", 2}}, kSequences),
        layer("WindowOfAnother", "attention", {{"window", 1}}, {{6, 6}, {3, 4}}),
        layer("Rotary", "attention", {{"rotary", Json::object()}}, kSequences),
        layer("RotaryInPart", "attention",
              {{"num_heads", 2},
               {"num_kv_heads", 1},
               {"head_dim", 6},
               {"rotary", {{"theta", 100}, {"dim", 4}, {"scaling", "linear"}, {"factor", 2}}}},
              kSequences),
        with_segments(layer("OfSegments", "attention", {{"num_heads", 2}}, kSequences)),
        with_segments(layer("RotaryOfSegments", "attention",
                            {{"num_heads", 3}, {"is_causal", true}, {"rotary", Json::object()}},
                            kSequences)),
        with_padding(with_segments(layer("OfSegmentsAndLengths", "attention", {}, kSequences))),
        with_segments(with_segments(layer("ToAnotherOfSegments", "attention", {},
                                          {{5, 6}, {5, 4}}))),
        masked_by(layer("Masked", "attention", {{"num_heads", 2}}, kSequences), {5, 5}),
        masked_by(layer("MaskedByHead", "attention", {{"num_heads", 2}, {"is_causal", true}},
                        kSequences),
                  {2, 5, 5}),
        masked_by(layer("MaskedForAllHeads", "attention", {{"num_heads", 2}}, {{5, 6}, {3, 4}}),
                  {1, 5, 3}),
        layer("Biased", "attention", {{"num_heads", 2}}, {{5, 6}, {2, 5, 5}}),
        step_by_step(layer("StepByStep", "attention", {{"is_causal", true}}, kSequences)),
        // Evaluation takes a row for one document.
        in_training(step_by_step(with_segments(layer("StepByStepOfSegments", "attention",
                                                     {{"is_causal", true}}, kSequences))))),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    GatedFeedForward, LayerContract,
    ::testing::Values(
        layer("SwiGlu", "gated_feed_forward", {{"hidden_features", 5}}),
        layer("SwiGluOfSequences", "gated_feed_forward",
              {{"hidden_features", 4}, {"bias", false}, {"out_features", 3}}, kSequences),
        layer("GeGlu", "gated_feed_forward", {{"hidden_features", 5}, {"activation", "gelu"}}),
        layer("ReGlu", "gated_feed_forward", {{"hidden_features", 5}, {"activation", "relu"}}),
        layer("Glu", "gated_feed_forward", {{"hidden_features", 5}, {"activation", "sigmoid"}},
              kImages),
        layer("Bilinear", "gated_feed_forward",
              {{"hidden_features", 3}, {"activation", "identity"}, {"init", "xavier_normal"}},
              kSequences),
        in_training(layer("SwiGluDropout", "gated_feed_forward",
                          {{"hidden_features", 5}, {"dropout", 0.4}}, kSequences))),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Activations, LayerContract,
    ::testing::Values(layer("Relu", "relu"), layer("Relu6", "relu6"),
                      layer("ScaledRelu", "scaled_relu"), layer("Sigmoid", "sigmoid"),
                      layer("LogSigmoid", "log_sigmoid"), layer("Tanh", "tanh"),
                      layer("Silu", "silu"), layer("Selu", "selu"), layer("Mish", "mish"),
                      layer("Softsign", "softsign"), layer("Hardsigmoid", "hardsigmoid"),
                      layer("Hardswish", "hardswish"), layer("Gelu", "gelu"),
                      layer("GeluTanh", "gelu", {{"approximate", "tanh"}}), layer("Elu", "elu"),
                      layer("Celu", "celu", {{"alpha", 1.3}}), layer("LeakyRelu", "leaky_relu"),
                      layer("Softplus", "softplus"), layer("Hardtanh", "hardtanh"),
                      layer("Softmax", "softmax"), layer("LogSoftmax", "log_softmax"),
                      layer("Glu", "glu"), layer("GluOfChannels", "glu", {{"dim", 1}}, kImages),
                      layer("LogSoftmaxOfChannels", "log_softmax", {{"dim", 1}}, kImages),
                      layer("Prelu", "prelu"),
                      layer("PreluByChannel", "prelu", {{"per_channel", true}}, kImages)),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Shapes, LayerContract,
    ::testing::Values(layer("Flatten", "flatten", {}, kImages),
                      layer("FlattenFrom2", "flatten", {{"start_dim", 2}}, kImages),
                      layer("Unflatten", "unflatten", {{"shape", {2, 3}}}),
                      layer("Transpose", "transpose", {}, kSequences),
                      layer("Select", "select", {}, kSequences),
                      layer("Narrow", "narrow", {{"start", 1}, {"length", 2}}),
                      layer("Mean", "reduce", {{"dims", {1}}}, kSequences),
                      layer("Max", "reduce", {{"reduction", "max"}}, kSequences),
                      layer("Sum", "reduce", {{"reduction", "sum"}, {"dims", {-1, -2}}}, kImages),
                      layer("Min", "reduce", {{"reduction", "min"}}),
                      layer("Last", "reduce", {{"reduction", "last"}, {"dims", {1}}}, kSequences),
                      with_padding(layer("MeanOfLengths", "reduce", {{"dims", {1}}}, kSequences)),
                      with_padding(layer("MaxOfMasked", "reduce",
                                         {{"dims", {1, -1}}, {"reduction", "max"}}, kSequences),
                                   Role::kMask),
                      with_padding(layer("LastOfLengths", "reduce",
                                         {{"dims", {1}}, {"reduction", "last"}}, kSequences)),
                      layer("Pad", "pad", {{"padding", {1, 2}}, {"value", 3}}, kImages),
                      layer("Upsample", "upsample", {}, kImages),
                      layer("Bilinear", "upsample", {{"mode", "bilinear"}, {"scale_factor", 3}},
                            kImages)),
    CaseName());

}  // namespace
}  // namespace treadle::testing
