#include <treadle/plugin.h>

#include "gloo.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::gloo_group::Gloo>("gloo");
}
