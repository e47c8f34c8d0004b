#pragma once

#include <string>
#include <vector>

#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>

namespace treadle::internal {

/// One line for each column and target of which float32, as which it enters the model, cannot tell
/// a tenth of the values apart: seconds since 1970, prices beside a large constant. `transformed`:
/// the rows behind the transforms, as float64. Looks at some of `rows`.
std::vector<std::string> notes_on_rounding(const RowReader& transformed, const RowList& rows);

}  // namespace treadle::internal
