#pragma once

#include <vector>

#include "flow/wiring/netlist.h"
#include "flow/wiring/tags.h"

namespace treadle::graph {

/// Where a flow goes on after a step.
struct Streams {
  std::vector<Vertex> open;  ///< at least one
  Vertex current = 0;        ///< the value that a tag names
};

/// Adds the nodes and edges of the present step of `net`, and leaves the streams that the next one
/// continues. Returns the nodes that its references go to. A mistake becomes a problem of the step,
/// and the streams are as good as they can be, so that all mistakes are reported at once.
std::vector<Vertex> wire_verb(Netlist& net, Tags& tags, Streams& streams);

/// Adds an identity with the id of the present step, which is disabled.
void pass_by(Netlist& net, Tags& tags, Streams& streams);

}  // namespace treadle::graph
