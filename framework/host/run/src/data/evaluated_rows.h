#pragma once

#include <treadle/core/data/group_names.h>
#include <treadle/core/data/row_reader.h>

namespace treadle::internal {

/// What the rows of an evaluation come from. Borrowed by what is made of it.
struct EvaluatedRows {
  const RowReader* rows = nullptr;    ///< the data's rows, or samples made of them
  const RowReader* source = nullptr;  ///< the data's own rows
  const GroupNames* names = nullptr;  ///< null: groups are called by their numbers
};

}  // namespace treadle::internal
