#include <treadle/core/training/solves_last_layer.h>

namespace treadle {

SolvesLastLayer::~SolvesLastLayer() = default;

}  // namespace treadle
