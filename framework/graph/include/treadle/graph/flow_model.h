#pragma once

#include <memory>

#include <treadle/core/model/model_spec.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>

namespace treadle::graph {

/// A flow as a model.
///
/// Its input() steps name ports of the data; the stream begins with the one that none names. Ports
/// that describe others (lengths, masks) are never the stream, and a step may name them without an
/// input step.
///
/// Outputs are those that outputs() names; else the tags that have the names of the loss's outputs,
/// if it requires several; else the end, which is cut along its last dimension.
///
/// Throws a DocumentError for mistakes in the flow, a DataError when it does not fit data or loss.
std::shared_ptr<Graph> build_model(const FlowBuilder& flow, const ModelSpec& spec);

}  // namespace treadle::graph
