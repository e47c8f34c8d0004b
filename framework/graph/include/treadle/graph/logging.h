#pragma once

#include <optional>
#include <string>
#include <vector>

#include <treadle/core/history/trend_recorder.h>
#include <treadle/graph/graph_state.h>

namespace treadle::graph {

// Logs tagged values and node times from a training loop written by hand, after a forward pass. The
// name of a group stands for its tags; no tags stand for all that have a value. An unknown tag
// throws a UsageError.

/// Records the values of the tags, without waiting for a device. Throws a UsageError for several
/// elements without a reduction.
void collect(TrendRecorder& recorder, const GraphState& state,
             const std::vector<std::string>& tags = {}, std::optional<Reduction> reduction = {});

/// Records the seconds of the tagged nodes in the last forward that was timed; nodes that took no
/// time were not run. Use a separate recorder for times: the tags are the same.
void collect_timings(TrendRecorder& timings, const GraphState& state,
                     const std::vector<std::string>& tags = {});

/// The values as text: "encoded: 0.25 | loss: 1.5", by name; of several elements the first.
std::string values_text(const GraphState& state, const std::vector<std::string>& tags = {});

/// Hands that text to GraphState::on_log(); without a hook it is a line of the standard error
/// stream.
void log(GraphState& state, const std::vector<std::string>& tags = {});

}  // namespace treadle::graph
