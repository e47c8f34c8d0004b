#pragma once

#include <cstddef>
#include <vector>

#include "flow/assembly/draft.h"
#include "run/node.h"

namespace treadle::graph {

/// Makes the layers and graphs that a place calls, for the sizes of its inputs. A layer or builder
/// may draw initial weights, so the places must come in their order. Empty, with a problem added
/// here or at an input, where one cannot be made.
std::vector<Callee> make_callees(Draft& draft, std::size_t place);

}  // namespace treadle::graph
