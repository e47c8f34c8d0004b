#include <treadle/plugin.h>

#include "averages.h"
#include "divergence_guard.h"
#include "early_stopping.h"
#include "freeze.h"
#include "log_gradient_norm.h"
#include "reduce_on_plateau.h"
#include "restore_best_weights.h"
#include "scale_learning_rate.h"
#include "stop.h"
#include "time_limit.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::callbacks;
  registrar.add<DivergenceGuard>("divergence_guard");
  registrar.add<EarlyStopping>("early_stopping");
  registrar.add<ExponentialMovingAverage>("ema");
  registrar.add<Freeze>("freeze");
  registrar.add<LogGradientNorm>("log_gradient_norm");
  registrar.add<ReduceOnPlateau>("reduce_on_plateau");
  registrar.add<RestoreBestWeights>("restore_best_weights");
  registrar.add<ScaleLearningRate>("scale_learning_rate");
  registrar.add<Stop>("stop");
  registrar.add<StochasticWeightAveraging>("swa");
  registrar.add<TimeLimit>("time_limit");
}
