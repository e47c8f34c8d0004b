#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/model/layer.h>

#include "flow/description.h"
#include "run/node.h"

namespace treadle::graph {

/// A message where the callees of a switch or a sparse mixture do not suit it: its router chooses
/// other branches, or in another way, or a branch that gets other rows in every forward has a
/// state. Nothing for other nodes.
std::optional<std::string> misfit_of_branches(const WantedNode& node,
                                              const std::vector<Callee>& callees);

/// Throws a DataError where a layer computes with numbers and is given integers: an index means
/// nothing to it. An adapted module of libtorch refuses them by itself.
void expect_numbers(const Callee& callee, std::span<const TensorSpec> inputs);

}  // namespace treadle::graph
