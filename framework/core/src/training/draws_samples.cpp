#include <treadle/core/training/draws_samples.h>

namespace treadle {

DrawsSamples::~DrawsSamples() = default;

}  // namespace treadle
