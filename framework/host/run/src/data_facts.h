#pragma once

#include <nlohmann/json.hpp>

#include "ingredients.h"

namespace treadle::internal {

/// The data a run was trained on, as result.json describes it: rows, columns with their types and
/// missing values, and the target with the rows of each class or the range of each number. Reads
/// all rows once where columns may have missing values.
nlohmann::json data_facts(const Ingredients& ingredients);

}  // namespace treadle::internal
