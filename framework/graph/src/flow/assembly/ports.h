#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "flow/assembly/draft.h"
#include "run/node.h"

namespace treadle::graph {

/// Puts the references of a place in the order in which its callee names them. False, with a
/// problem added, where they are not those that it names.
bool order_references(Draft& draft, std::size_t place, const Callee& callee);

/// The names of the further outputs that have tags, whose places are noted at this one. Nothing,
/// with a problem added, where the callee has no such output.
std::optional<std::vector<std::string>> further_outputs(Draft& draft, std::size_t place,
                                                        const Callee& callee);

}  // namespace treadle::graph
