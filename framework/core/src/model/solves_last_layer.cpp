#include <treadle/core/solves_last_layer.h>

namespace treadle {

SolvesLastLayer::~SolvesLastLayer() = default;

}  // namespace treadle
