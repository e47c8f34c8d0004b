#pragma once

#include <nlohmann/json.hpp>

#include "data/dataset.h"

namespace treadle::internal {

/// The data a run was trained on, as result.json describes it: rows, columns with their types and
/// missing values, and the target with the rows of each class or the range of each number. Reads
/// all rows once where columns may have missing values.
///
/// Of a stream, its first rows are described: "described_rows" is their number, and "rows" null
/// where nobody knows how many there are.
nlohmann::json data_facts(const Dataset& dataset);

}  // namespace treadle::internal
