// Never finishes loading, and starts a process that would outlive it.
#include <unistd.h>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

namespace {
const int slept = [] {
  if (fork() == 0) {
    while (true)
      pause();
  }
  while (true)
    pause();
  return 0;
}();
}  // namespace

TREADLE_PLUGIN(registrar) {
  static_cast<void>(slept);
  registrar.add<Listener>("listener");
}
