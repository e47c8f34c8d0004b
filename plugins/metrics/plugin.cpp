#include <treadle/plugin.h>

#include "bits_per_byte.h"
#include "class_metrics.h"
#include "forecast_metrics.h"
#include "number_metrics.h"
#include "pinball.h"
#include "residuals.h"
#include "scaled_errors.h"
#include "score_metrics.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::metrics;
  registrar.add<CountMetricOf<kAccuracy>>("accuracy");
  registrar.add<CountMetricOf<kMacroPrecision>>("macro_precision");
  registrar.add<CountMetricOf<kMacroRecall>>("macro_recall");
  registrar.add<CountMetricOf<kMacroF1>>("macro_f1");
  registrar.add<CountMetricOf<kMeanIou>>("mean_iou");
  registrar.add<ConfusionMatrix>("confusion_matrix");
  registrar.add<Auc>("auc");
  registrar.add<PositionMetricOf<kLogLoss>>("log_loss");
  registrar.add<PositionMetricOf<kPerplexity>>("perplexity");
  registrar.add<PositionMetricOf<kKlDiv>>("kl_div");
  registrar.add<PositionMetricOf<kHammingLoss>>("hamming_loss");
  registrar.add<ErrorMetricOf<kMse>>("mse");
  registrar.add<ErrorMetricOf<kRmse>>("rmse");
  registrar.add<ErrorMetricOf<kMae>>("mae");
  registrar.add<R2>("r2");
  registrar.add<Pinball>("pinball");
  registrar.add<Crps>("crps");
  registrar.add<IntervalScore>("interval_score");
  registrar.add<RatioMetricOf<kSmape>>("smape");
  registrar.add<RatioMetricOf<kWape>>("wape");
  registrar.add<ScaledMetricOf<kMase>, treadle::MetricComputer>("mase");
  registrar.add<ScaledMetricOf<kRmsse>, treadle::MetricComputer>("rmsse");
  registrar.add<BitsPerByte>("bits_per_byte");
  registrar.add<Residuals>("residuals");
}
