#include <treadle/plugin.h>

#include "asha.h"
#include "hyperband.h"
#include "patient.h"
#include "percentile.h"
#include "population_based.h"
#include "successive_halving.h"
#include "threshold.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::pruners;
  registrar.add<Asha>("asha");
  registrar.add<Hyperband>("hyperband");
  registrar.add<Median>("median");
  registrar.add<Patient>("patient");
  registrar.add<Percentile>("percentile");
  registrar.add<PopulationBased>("population_based");
  registrar.add<SuccessiveHalving>("successive_halving");
  registrar.add<Threshold>("threshold");
}
