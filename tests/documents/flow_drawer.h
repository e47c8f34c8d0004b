#pragma once

#include <c10/core/ScalarType.h>
#include <nlohmann/json.hpp>

#include "drawing.h"

namespace treadle::testing {

/// Draws the steps of a flow that suits the data of `drawing`: its inputs beside each other or the
/// first alone, a random network, and heads for the targets. `dtype`: of numbers. A flow of an
/// ensemble ends with the outputs of all members. Throws a ContractViolation where a layer throws
/// another exception than a Treadle error.
nlohmann::json draw_flow(Drawing& drawing, at::ScalarType dtype, bool is_ensemble);

}  // namespace treadle::testing
