#include <treadle/plugin.h>

#include "packed.h"
#include "windows.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::sequences::Packed>("packed");
  registrar.add<treadle::sequences::Windows>("windows");
}
