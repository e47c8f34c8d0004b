#pragma once

#include <treadle/base/component.h>

namespace treadle::layers {

/// Offers functions of one tensor, element by element or along a dimension, that have no weights.
void add_activations(Registrar& registrar);

}  // namespace treadle::layers
