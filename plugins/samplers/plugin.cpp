#include <treadle/plugin.h>

#include "by_length.h"
#include "curriculum.h"
#include "sequential.h"
#include "shuffled.h"
#include "weighted.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::samplers;
  registrar.add<ByLength>("by_length");
  registrar.add<Curriculum>("curriculum");
  registrar.add<Sequential>("sequential");
  registrar.add<Shuffled>("shuffled");
  registrar.add<Weighted>("weighted");
}
