#include <treadle/plugin.h>

#include "conformal.h"
#include "coverage.h"
#include "isotonic.h"
#include "platt.h"
#include "temperature.h"
#include "threshold.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::outputs;
  registrar.add<Temperature>("temperature");
  registrar.add<Platt>("platt");
  registrar.add<Isotonic>("isotonic");
  registrar.add<Conformal>("conformal");
  registrar.add<Threshold>("threshold");
  registrar.add<IntervalCoverage>("interval_coverage");
  registrar.add<SetCoverage>("set_coverage");
}
