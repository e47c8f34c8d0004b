#pragma once

#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/model_spec.h>

namespace treadle::forecasting {

/// As documents name them: "location", "scale", "dimensionless", "count".
std::string name_of(Estimate estimate);
std::vector<std::string> names_of(const std::vector<Estimate>& estimates);

/// Those of the parameter "estimates".
std::vector<Estimate> estimates_in(const Config& config);

}  // namespace treadle::forecasting
