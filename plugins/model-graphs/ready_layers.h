#pragma once

#include <treadle/base/component.h>

namespace treadle::model_graphs {

/// Offers the parts of <treadle/graph/ready_parts.h> by name.
void add_ready_layers(Registrar& registrar);

}  // namespace treadle::model_graphs
