// Dies while it is loaded, after some last words.
#include <csignal>
#include <cstdio>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

namespace {
const int died = [] {
  std::puts("touching what is not mine");
  std::raise(SIGSEGV);
  return 0;
}();
}  // namespace

TREADLE_PLUGIN(registrar) {
  static_cast<void>(died);
  registrar.add<Listener>("listener");
}
