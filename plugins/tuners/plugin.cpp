#include <treadle/plugin.h>

#include "cma_es.h"
#include "gp.h"
#include "grid.h"
#include "nsga_ii.h"
#include "random_search.h"
#include "regularized_evolution.h"
#include "sobol.h"
#include "tpe.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::tuners;
  registrar.add<CmaEs>("cma_es");
  registrar.add<Gp>("gp");
  registrar.add<Grid>("grid");
  registrar.add<NsgaII>("nsga_ii");
  registrar.add<RandomSearch>("random");
  registrar.add<RegularizedEvolution>("regularized_evolution");
  registrar.add<Sobol>("sobol");
  registrar.add<Tpe>("tpe");
}
