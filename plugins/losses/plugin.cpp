#include <treadle/plugin.h>

#include "class_losses.h"
#include "number_losses.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::losses;
  registrar.add<CrossEntropy>("cross_entropy");
  registrar.add<BceWithLogits>("bce_with_logits");
  registrar.add<Mse>("mse");
  registrar.add<L1>("l1");
  registrar.add<SmoothL1>("smooth_l1");
}
