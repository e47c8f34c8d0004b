#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/problem.h>
#include <treadle/core/model/layer.h>
#include <treadle/graph/flow_builder.h>

#include "flow/wiring/wire.h"
#include "run/graph_data.h"

namespace treadle::graph {

/// A graph while it is assembled from one flow: the wanted nodes, and the places made so far.
/// assemble_graph() makes one and passes it through the functions of this folder. Borrows the flow,
/// its wiring, the spec and the list of problems, which must outlive it.
struct Draft {
  const FlowBuilder& flow;
  const Wired& wired;
  const LayerSpec* spec;  ///< null: no sizes are inferred
  std::vector<Problem>& problems;
  std::size_t levels;  ///< of flows within each other, down to this one

  std::unique_ptr<Graph::Impl> graph = std::make_unique<Graph::Impl>();
  std::vector<Vertex> order = {};          ///< vertices by place
  std::vector<std::size_t> place_of = {};  ///< places by vertex

  const WantedNode& wanted(std::size_t place) const { return wired.description[order[place]]; }

  /// Adds a problem of the step, or of the flow where it is null.
  void complain(const FlowStep* step, std::string message);
  /// Adds a problem of the step that a place was made for.
  void complain_at(std::size_t place, std::string message);
  /// Runs `work`, which may call plugins. An exception becomes a problem of the place, with its
  /// inputs in the message, and gives false; only std::bad_alloc passes.
  bool attempt(std::size_t place, const std::function<void()>& work);

  /// The results of the places that a place reads. Empty optional: one of them is unknown.
  std::optional<std::vector<TensorSpec>> specs_of_inputs(std::size_t place) const;
};

/// "a, b, c"
std::string joined(const std::vector<std::string>& words, const std::string& between);

}  // namespace treadle::graph
