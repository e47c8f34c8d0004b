#pragma once

#include <string>
#include <vector>

#include <treadle/graph/graph.h>
#include <treadle/host/catalog/latency_model.h>
#include <treadle/host/run/runtime.h>

#include "terminal/terminal.h"

/// Measures a machine for a LatencyModel: `workflow-runner latency`.
namespace treadle::cli {

/// Times forward passes of one row in evaluation, on this thread alone and by its own clock: the
/// median of several after some to warm up. Throws a UsageError for a graph whose inputs' sizes are
/// not known.
LatencyModel::Pass measure_pass(graph::Graph& graph, std::string name);

/// Of dense layers and convolutions of several widths and depths, made by the plugins there are.
std::vector<LatencyModel::Pass> measure_known_networks(const Runtime& runtime);

/// Measured beside predicted, and how good the model is.
std::string latency_text(const LatencyModel::Fit& fit,
                         const std::vector<LatencyModel::Pass>& passes, const Terminal& terminal);

}  // namespace treadle::cli
