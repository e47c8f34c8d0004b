#include <treadle/plugin.h>

#include "parquet_data.h"
#include "parquet_writer.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::parquet::ParquetData>("parquet");
  registrar.add<treadle::parquet::ParquetWriter>("parquet");
}
