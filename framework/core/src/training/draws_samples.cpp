#include <treadle/core/training/draws_samples.h>
#include <treadle/core/training/predicts_uncertainty.h>

namespace treadle {

DrawsSamples::~DrawsSamples() = default;
PredictsUncertainty::~PredictsUncertainty() = default;

}  // namespace treadle
