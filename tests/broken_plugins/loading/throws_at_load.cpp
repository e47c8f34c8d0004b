// Throws while it is loaded: nobody can catch it, the process is terminated.
#include <stdexcept>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

namespace {
const int thrown = [] {
  throw std::runtime_error("the licence has run out");
  return 0;
}();
}  // namespace

TREADLE_PLUGIN(registrar) {
  static_cast<void>(thrown);
  registrar.add<Listener>("listener");
}
