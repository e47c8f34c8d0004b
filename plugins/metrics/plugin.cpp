#include <treadle/plugin.h>

#include "agreement_metrics.h"
#include "bits_per_byte.h"
#include "calibration.h"
#include "class_metrics.h"
#include "class_scores.h"
#include "curves.h"
#include "deviation.h"
#include "forecast_metrics.h"
#include "number_metrics.h"
#include "pinball.h"
#include "quantile_coverage.h"
#include "ranking_metrics.h"
#include "residuals.h"
#include "scaled_errors.h"
#include "score_histogram.h"
#include "score_metrics.h"
#include "thresholds.h"
#include "top_k.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::metrics;
  registrar.add<CountMetricOf<kAccuracy>>("accuracy");
  registrar.add<CountMetricOf<kMacroPrecision>>("macro_precision");
  registrar.add<CountMetricOf<kMacroRecall>>("macro_recall");
  registrar.add<CountMetricOf<kMacroF1>>("macro_f1");
  registrar.add<CountMetricOf<kMeanIou>>("mean_iou");
  registrar.add<ClassScoreMetricOf<kPrecision>>("precision");
  registrar.add<ClassScoreMetricOf<kRecall>>("recall");
  registrar.add<ClassScoreMetricOf<kF1>>("f1");
  registrar.add<ClassScoreMetricOf<kFBeta>>("f_beta");
  registrar.add<ClassScoreMetricOf<kSpecificity>>("specificity");
  registrar.add<Mcc>("mcc");
  registrar.add<BalancedAccuracy>("balanced_accuracy");
  registrar.add<CohenKappa>("cohen_kappa");
  registrar.add<TopKAccuracy>("top_k_accuracy");
  registrar.add<ConfusionMatrix>("confusion_matrix");
  registrar.add<Auc>("auc");
  registrar.add<AveragePrecision>("average_precision");
  registrar.add<Curves>("curves");
  registrar.add<Thresholds>("thresholds");
  registrar.add<ScoreHistogram>("score_histogram");
  registrar.add<Ece>("ece");
  registrar.add<Reliability>("reliability");
  registrar.add<PositionMetricOf<kBrier>>("brier");
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
  registrar.add<RatioMetricOf<kMape>>("mape");
  registrar.add<Deviation>("deviation");
  registrar.add<QuantileCoverage>("quantile_coverage");
  registrar.add<ScaledMetricOf<kMase>, treadle::MetricComputer>("mase");
  registrar.add<ScaledMetricOf<kRmsse>, treadle::MetricComputer>("rmsse");
  registrar.add<BitsPerByte>("bits_per_byte");
  registrar.add<Residuals>("residuals");
}
