// Needs a function that no library has.
#include <treadle/plugin.h>
#include "sound/working_listener.h"

extern "C" void treadle_test_no_such_function();

TREADLE_PLUGIN(registrar) {
  treadle_test_no_such_function();
  registrar.add<Listener>("listener");
}
