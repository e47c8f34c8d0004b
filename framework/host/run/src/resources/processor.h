#pragma once

namespace treadle::internal {

/// Whether this processor multiplies vectors or matrices of 16 bits.
bool multiplies_bfloat16();
bool multiplies_float16();

}  // namespace treadle::internal
