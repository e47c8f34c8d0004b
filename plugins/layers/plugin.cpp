#include <treadle/plugin.h>

#include "activations.h"
#include "attention.h"
#include "convolution.h"
#include "dense.h"
#include "dropout.h"
#include "embedding.h"
#include "gated_feed_forward.h"
#include "members.h"
#include "narrow_linear.h"
#include "normalization.h"
#include "normed_weight.h"
#include "numeric_embeddings.h"
#include "pooling.h"
#include "recurrent.h"
#include "shapes.h"

namespace {

template <typename Layer>
void add(treadle::Registrar& registrar, std::string_view name) {
  registrar.add<treadle::FactoryOf<Layer>, treadle::LayerFactory>(name);
}

}  // namespace

TREADLE_PLUGIN(registrar) {
  using namespace treadle::layers;
  add<Dense>(registrar, "dense");
  add<Head>(registrar, "head");
  add<BatchEnsembleDense>(registrar, "batch_ensemble_dense");
  add<EnsembleDense>(registrar, "ensemble_dense");
  add<Float8Linear>(registrar, "fp8_linear");
  add<NvFp4Linear>(registrar, "nvfp4_linear");

  add<Convolution<1>>(registrar, "conv1d");
  add<Convolution<2>>(registrar, "conv2d");
  add<Convolution<3>>(registrar, "conv3d");
  add<TransposedConvolution<1>>(registrar, "conv_transpose1d");
  add<TransposedConvolution<2>>(registrar, "conv_transpose2d");
  add<TransposedConvolution<3>>(registrar, "conv_transpose3d");

  add<Pooling<1, Pool::kMax>>(registrar, "max_pool1d");
  add<Pooling<2, Pool::kMax>>(registrar, "max_pool2d");
  add<Pooling<1, Pool::kAverage>>(registrar, "avg_pool1d");
  add<Pooling<2, Pool::kAverage>>(registrar, "avg_pool2d");
  add<AdaptivePooling<1, Pool::kMax>>(registrar, "adaptive_max_pool1d");
  add<AdaptivePooling<2, Pool::kMax>>(registrar, "adaptive_max_pool2d");
  add<AdaptivePooling<1, Pool::kAverage>>(registrar, "adaptive_avg_pool1d");
  add<AdaptivePooling<2, Pool::kAverage>>(registrar, "adaptive_avg_pool2d");

  add<BatchNorm>(registrar, "batch_norm");
  add<LayerNorm>(registrar, "layer_norm");
  add<RmsNorm>(registrar, "rms_norm");
  add<GroupNorm>(registrar, "group_norm");
  add<InstanceNorm>(registrar, "instance_norm");

  registrar.add<MadeAround<WeightNorm>, treadle::LayerFactory>("weight_norm");
  registrar.add<MadeAround<SpectralNorm>, treadle::LayerFactory>("spectral_norm");

  add<Dropout<Drops::kElements>>(registrar, "dropout");
  add<Dropout<Drops::kChannels>>(registrar, "feature_dropout");
  add<Dropout<Drops::kAlpha>>(registrar, "alpha_dropout");

  add<Embedding>(registrar, "embedding");
  add<PositionalEncoding>(registrar, "positional_encoding");
  add<PeriodicEmbedding>(registrar, "periodic_embedding");
  add<PiecewiseLinearEmbedding>(registrar, "piecewise_linear_embedding");

  add<RecurrentCell<Recurrence::kTanh>>(registrar, "rnn_cell");
  add<RecurrentCell<Recurrence::kGru>>(registrar, "gru_cell");
  add<RecurrentCell<Recurrence::kLstm>>(registrar, "lstm_cell");
  add<Recurrent<Recurrence::kTanh>>(registrar, "rnn");
  add<Recurrent<Recurrence::kGru>>(registrar, "gru");
  add<Recurrent<Recurrence::kLstm>>(registrar, "lstm");

  add<Attention>(registrar, "attention");
  add<GatedFeedForward>(registrar, "gated_feed_forward");

  add_activations(registrar);
  add_shapes(registrar);
}
