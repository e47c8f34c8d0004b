#include <treadle/plugin.h>

#include "cma_es.h"
#include "grid.h"
#include "random_search.h"
#include "sobol.h"
#include "tpe.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::tuners;
  registrar.add<CmaEs>("cma_es");
  registrar.add<Grid>("grid");
  registrar.add<RandomSearch>("random");
  registrar.add<Sobol>("sobol");
  registrar.add<Tpe>("tpe");
}
