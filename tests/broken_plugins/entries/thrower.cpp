// Throws in its entry.
#include <stdexcept>

#include <treadle/plugin.h>

TREADLE_PLUGIN(registrar) {
  throw std::runtime_error("the license server is asleep");
}
