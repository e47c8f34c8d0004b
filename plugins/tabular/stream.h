#pragma once

#include <treadle/core/model/factory_of.h>

namespace treadle::tabular {

/// The width of the stream, which is rows of numbers [B, width] and the only input. Throws a
/// DataError for anything else.
std::int64_t width_of_rows(const LayerSpec& spec);

}  // namespace treadle::tabular
