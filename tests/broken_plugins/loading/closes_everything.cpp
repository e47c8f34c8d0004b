// Closes every descriptor, floods the output first, and changes folders: a helper must not care.
#include <unistd.h>

#include <cstdio>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

namespace {
const int closed = [] {
  for (int i = 0; i < 200000; ++i)
    std::puts("a line that nobody wants to read, again and again and again and again");
  for (int descriptor = 0; descriptor < 64; ++descriptor)
    close(descriptor);
  return chdir("/");
}();
}  // namespace

TREADLE_PLUGIN(registrar) {
  static_cast<void>(closed);
  registrar.add<Listener>("listener");
}
