#include <treadle/plugin.h>

#include "impute.h"
#include "linear_scaler.h"
#include "one_hot.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::transforms::Standardize>("standardize");
  registrar.add<treadle::transforms::MinMax>("min_max");
  registrar.add<treadle::transforms::OneHot>("one_hot");
  registrar.add<treadle::transforms::Impute>("impute");
}
