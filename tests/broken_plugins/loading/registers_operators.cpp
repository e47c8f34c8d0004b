// Registers operators under a namespace that another plugin takes, too: alone it works.
#include <torch/library.h>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

TORCH_LIBRARY(treadle_test_operators, library) {
  library.def("nothing(Tensor a) -> Tensor");
}

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>(TREADLE_TEST_NAME);
}
