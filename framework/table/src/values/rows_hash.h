#pragma once

#include <cstdint>
#include <string>

#include "values/parsed_rows.h"

namespace treadle::table {

/// 32 hex digits over the values of some rows, equal whether labels have the numbers of a first
/// reading or those of a description. The dictionaries are in `labels`, the values in `rows`.
std::string hash_of_rows(ParsedRows& rows, const ParsedRows& labels);

}  // namespace treadle::table
