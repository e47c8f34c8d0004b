#pragma once

#include <cstddef>

#include "flow/assembly/draft.h"

// Sizes flow forward. Places are made in execution order, and each layer is made for the sizes of
// its inputs, which earlier places have determined. Two cases need more:
// - A state is read before it is computed. Its size is that of its initial value, or it is absent;
//   the readers are inferred once more when the written size is known (check_states()).
// - Without a LayerSpec nothing is inferred. All results stay unknown, layers are made for an empty
//   spec, which those that need sizes refuse.

namespace treadle::graph {

/// Sets the results of a place whose node is made: the sizes of its outputs. They stay unknown,
/// with a problem added here or at an input, where it cannot take its inputs.
void infer_results(Draft& draft, std::size_t place);

/// For a complete graph. In the first forward states are absent, or as declared; in the next they
/// are as written. Adds a problem of each place that does not give the same sizes for both.
void check_states(Draft& draft);

}  // namespace treadle::graph
