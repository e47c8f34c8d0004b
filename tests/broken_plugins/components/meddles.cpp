// Loads, works, and leaves the process another one: `plugins check` says so.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>("listener");
  at::set_num_threads(7);
  setenv("TREADLE_TEST_MEDDLED", "yes", 1);
  std::puts("hello from a plugin");
}
