// Ends the process while it is loaded, as if all were well.
#include <cstdlib>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

namespace {
const int left = [] {
  std::exit(0);
  return 0;
}();
}  // namespace

TREADLE_PLUGIN(registrar) {
  static_cast<void>(left);
  registrar.add<Listener>("listener");
}
