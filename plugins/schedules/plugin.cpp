#include <treadle/plugin.h>

#include "schedules.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::schedules;
  registrar.add<Constant>("constant");
  registrar.add<StepDecay>("step");
  registrar.add<Cosine>("cosine");
  registrar.add<Linear>("linear");
  registrar.add<Polynomial>("polynomial");
  registrar.add<Exponential>("exponential");
  registrar.add<MultiStep>("multi_step");
  registrar.add<CosineRestarts>("cosine_restarts");
  registrar.add<OneCycle>("one_cycle");
  registrar.add<InverseSquareRoot>("inverse_square_root");
  registrar.add<Sequential>("sequential");
}
