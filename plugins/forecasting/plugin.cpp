#include <treadle/plugin.h>

#include "forecasters.h"
#include "n_beats.h"
#include "n_hits.h"
#include "patch_layers.h"
#include "patch_tst.h"
#include "recurrent_forecasters.h"
#include "temporal_fusion_layers.h"
#include "temporal_fusion_transformer.h"
#include "window_layers.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::forecasting;
  registrar.add<MadeLayer<WindowScale>, treadle::LayerFactory>("window_scale");
  registrar.add<MadeLayer<WindowUnscale>, treadle::LayerFactory>("window_unscale");
  registrar.add<MadeLayer<SeriesDecomposition>, treadle::LayerFactory>("series_decomposition");
  registrar.add<MadeLayer<RepeatPeriod>, treadle::LayerFactory>("repeat_period");
  registrar.add<MadeLayer<Patches>, treadle::LayerFactory>("patches");
  registrar.add<MadeLayer<PatchEmbedding>, treadle::LayerFactory>("patch_embedding");
  registrar.add<MadeLayer<PatchEncoderLayer>, treadle::LayerFactory>("patch_encoder_layer");
  registrar.add<MadeLayer<NBeatsStack>, treadle::LayerFactory>("n_beats_stack");
  registrar.add<MadeLayer<NHitsStack>, treadle::LayerFactory>("n_hits_stack");
  registrar.add<MadeLayer<GatedResidualNetwork>, treadle::LayerFactory>("gated_residual_network");
  registrar.add<MadeLayer<GatedAddNorm>, treadle::LayerFactory>("gated_add_norm");
  registrar.add<MadeLayer<VariableSelection>, treadle::LayerFactory>("variable_selection");
  registrar.add<MadeLayer<LstmEncoderDecoder>, treadle::LayerFactory>("lstm_encoder_decoder");
  registrar.add<MadeLayer<InterpretableAttention>, treadle::LayerFactory>(
      "interpretable_attention");
  registrar.add<Repeat, treadle::GraphBuilder>("repeat");
  registrar.add<Seasonal, treadle::GraphBuilder>("seasonal");
  registrar.add<Linear, treadle::GraphBuilder>("linear");
  registrar.add<NLinear, treadle::GraphBuilder>("nlinear");
  registrar.add<DLinear, treadle::GraphBuilder>("dlinear");
  registrar.add<PatchTst, treadle::GraphBuilder>("patch_tst");
  registrar.add<NBeats, treadle::GraphBuilder>("n_beats");
  registrar.add<NHits, treadle::GraphBuilder>("n_hits");
  registrar.add<RecurrentForecaster<GruName>, treadle::GraphBuilder>("gru_forecaster");
  registrar.add<RecurrentForecaster<LstmName>, treadle::GraphBuilder>("lstm_forecaster");
  registrar.add<TemporalFusionTransformer, treadle::GraphBuilder>("temporal_fusion_transformer");
}
