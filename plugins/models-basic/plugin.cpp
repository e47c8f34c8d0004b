#include <treadle/plugin.h>

#include "mlp.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::models::Mlp>("mlp");
  registrar.add<treadle::models::Linear>("linear");
}
