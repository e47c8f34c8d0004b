#pragma once

#include <cstdint>

namespace treadle {

/// Of float32 numbers, in float64. Sixteen sums lie beside one another, each of every sixteenth
/// number, and are added in order: the same bits with every instruction set, since the square of a
/// float32 number is exact in float64.
double sum_of_squares(const float* values, std::int64_t count);

}  // namespace treadle
