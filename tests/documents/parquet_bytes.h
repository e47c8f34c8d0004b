#pragma once

#include <string>
#include <vector>

namespace treadle::testing {

/// A Parquet file of these rows, without compression and in row groups of a few rows: a column of
/// numbers, of dates or of texts, whatever all its fields are; an empty field is null. Written by
/// hand, so that it needs no plugin.
std::string parquet_of(const std::vector<std::string>& names,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace treadle::testing
