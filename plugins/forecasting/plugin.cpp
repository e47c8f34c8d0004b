#include <treadle/core/model/factory_of.h>
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
  registrar.add<treadle::FactoryOf<WindowScale>, treadle::LayerFactory>("window_scale");
  registrar.add<treadle::FactoryOf<WindowUnscale>, treadle::LayerFactory>("window_unscale");
  registrar.add<treadle::FactoryOf<SeriesDecomposition>, treadle::LayerFactory>(
      "series_decomposition");
  registrar.add<treadle::FactoryOf<RepeatPeriod>, treadle::LayerFactory>("repeat_period");
  registrar.add<treadle::FactoryOf<Patches>, treadle::LayerFactory>("patches");
  registrar.add<treadle::FactoryOf<PatchEmbedding>, treadle::LayerFactory>("patch_embedding");
  registrar.add<treadle::FactoryOf<PatchEncoderLayer>, treadle::LayerFactory>(
      "patch_encoder_layer");
  registrar.add<treadle::FactoryOf<NBeatsStack>, treadle::LayerFactory>("n_beats_stack");
  registrar.add<treadle::FactoryOf<NHitsStack>, treadle::LayerFactory>("n_hits_stack");
  registrar.add<treadle::FactoryOf<GatedResidualNetwork>, treadle::LayerFactory>(
      "gated_residual_network");
  registrar.add<treadle::FactoryOf<GatedAddNorm>, treadle::LayerFactory>("gated_add_norm");
  registrar.add<treadle::FactoryOf<VariableSelection>, treadle::LayerFactory>("variable_selection");
  registrar.add<treadle::FactoryOf<LstmEncoderDecoder>, treadle::LayerFactory>(
      "lstm_encoder_decoder");
  registrar.add<treadle::FactoryOf<InterpretableAttention>, treadle::LayerFactory>(
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
