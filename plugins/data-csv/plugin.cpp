#include <treadle/plugin.h>

#include "csv_data.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::csv::CsvData>("csv");
}
