#pragma once

#include <nlohmann/json.hpp>

#include "fit/fit.h"

namespace treadle::internal {

/// Where an optimizer of the fit chooses between rules by parameter (NamesRules): the parameters of
/// each rule, {"muon": ["layers.0.weight"], "adamw": ["layers.0.bias"], "group 1": [...]}. A group
/// is a rule of its own where its optimizer has one alone. Null where no optimizer chooses.
nlohmann::json parameter_rules(Fit& fit);

}  // namespace treadle::internal
