#include <treadle/plugin.h>

#include "cpu.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::device_cpu::Cpu>("cpu");
}
