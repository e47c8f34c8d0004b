#pragma once

#include <string>
#include <vector>

#include <treadle/table/table_source.h>

#include "values/row_positions.h"

namespace treadle::table {

/// The cells of the columns `names`, a list for each, of the rows that were kept when the source
/// was read before, as text; "" for a missing value. Throws DataError for a name that is no column,
/// or is two, and where the source has other rows now.
std::vector<std::vector<std::string>> read_texts(TableSource& source, const RowPositions& kept,
                                                 const std::vector<std::string>& names);

}  // namespace treadle::table
