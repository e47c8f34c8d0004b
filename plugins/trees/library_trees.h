#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tree_sum.h"

namespace treadle::trees {

/// The trees of one round in a model as XGBoost saves it, in UBJSON: one for each margin, in their
/// order. Throws a TrainingError where there are others.
///
/// The format: https://xgboost.readthedocs.io/en/stable/tutorials/saving_model.html
std::vector<Tree> trees_in(std::string_view model, std::int64_t margins);

}  // namespace treadle::trees
