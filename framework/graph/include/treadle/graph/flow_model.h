#pragma once

#include <memory>

#include <treadle/core/model_spec.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>

namespace treadle::graph {

/// A flow as a model. Its input() steps name the data's ports; the stream begins with the one that
/// none names. Its outputs are the loss's, or its end is cut into them. Throws a DocumentError for
/// mistakes in the flow, a DataError when it does not fit data or loss.
std::shared_ptr<Graph> build_model(const FlowBuilder& flow, const ModelSpec& spec);

}  // namespace treadle::graph
