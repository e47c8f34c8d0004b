#include <treadle/plugin.h>

#include "text_data.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::text::TextData>("text");
}
