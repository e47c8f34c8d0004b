#include <treadle/core/draws_samples.h>

namespace treadle {

DrawsSamples::~DrawsSamples() = default;

}  // namespace treadle
