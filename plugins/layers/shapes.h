#pragma once

#include <treadle/base/component.h>

namespace treadle::layers {

/// Offers layers that move elements about, pick some, or join them, without weights.
void add_shapes(Registrar& registrar);

}  // namespace treadle::layers
