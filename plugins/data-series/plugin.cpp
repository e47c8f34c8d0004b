#include <treadle/plugin.h>

#include "series_data.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::series::SeriesData>("series");
}
