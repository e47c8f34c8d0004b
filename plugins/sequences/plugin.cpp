#include <treadle/plugin.h>

#include "windows.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::sequences::Windows>("windows");
}
