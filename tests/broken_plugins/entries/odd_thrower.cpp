// Throws something nobody expects.
#include <treadle/plugin.h>

TREADLE_PLUGIN(registrar) {
  throw 42;
}
