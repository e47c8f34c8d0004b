#include <treadle/plugin.h>

#include "impute.h"
#include "linear_scaler.h"
#include "normalize.h"
#include "one_hot.h"
#include "quantiles.h"
#include "rare_categories.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::transforms::Standardize, treadle::Transform>("standardize");
  registrar.add<treadle::transforms::MinMax, treadle::Transform>("min_max");
  registrar.add<treadle::transforms::Robust, treadle::Transform>("robust");
  registrar.add<treadle::transforms::Normalize, treadle::Transform>("normalize");
  registrar.add<treadle::transforms::Quantile, treadle::Transform>("quantile");
  registrar.add<treadle::transforms::QuantileBins, treadle::Transform>("quantile_bins");
  registrar.add<treadle::transforms::OneHot>("one_hot");
  registrar.add<treadle::transforms::Impute>("impute");
  registrar.add<treadle::transforms::RareCategories>("rare_categories");
}
