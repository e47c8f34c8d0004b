#include <treadle/plugin.h>

#include "composed.h"
#include "consecutive.h"
#include "group_k_fold.h"
#include "hold_out.h"
#include "k_fold.h"
#include "leave_one_out.h"
#include "monte_carlo.h"
#include "predefined.h"
#include "purged_k_fold.h"
#include "time_series.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::validation;
  registrar.add<HoldOut>("hold_out");
  registrar.add<KFold>("k_fold");
  registrar.add<GroupKFold>("group_k_fold");
  registrar.add<StratifiedGroupKFold>("stratified_group_k_fold");
  registrar.add<LeaveOneOut>("leave_one_out");
  registrar.add<LeaveOneGroupOut>("leave_one_group_out");
  registrar.add<MonteCarlo>("monte_carlo");
  registrar.add<TimeSeries>("time_series");
  registrar.add<WalkForward>("walk_forward");
  registrar.add<PurgedKFold>("purged");
  registrar.add<Consecutive>("consecutive");
  registrar.add<Predefined>("predefined");
  registrar.add<Repeated>("repeated");
  registrar.add<Nested>("nested");
}
