#include <treadle/plugin.h>

#include "image_data.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::images::ImageData>("images");
}
