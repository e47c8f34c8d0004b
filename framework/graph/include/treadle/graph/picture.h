#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <treadle/graph/graph.h>
#include <treadle/graph/profile.h>

namespace treadle::graph {

struct PictureOptions {
  std::string title;
  /// Nodes are coloured by their share of the time in it, green to red, and levels of several nodes
  /// show how many ran at once. Null: by kind.
  const Profile* profile = nullptr;
};

/// The graph as Graphviz source, from top to bottom. A node shows its name, its layer, the shape of
/// its output and its number of parameters; shapes and colours distinguish inputs, states, merges,
/// activations and norms. Nested graphs, loops, maps and switches are clusters; references are
/// dashed, states dotted, and nodes of one level stand side by side.
std::string dot(const Graph& graph, const PictureOptions& options = {});

/// The graph coloured by what its nodes took in the last forward. Throws a UsageError when none was
/// timed.
std::string dot_with_profile(const Graph& graph, const GraphState& state,
                             const std::string& title = "");

/// Graphviz source as an SVG document, by the program `dot`. Throws a UsageError that names the
/// package to install when it is missing, and that has its message when it fails.
std::string svg(const std::string& dot_source);

/// A table of the nodes: name, layer, what it gives, parameters; graphs within are indented. Where
/// the sizes of inputs are known also, for one row, the memory of what it gives and the
/// floating-point operations it takes, by costs(). The last line sums up.
std::string summary(Graph& graph);

/// The rows of summary() as cells, the head first and without the last line. Rows of graphs within
/// have two spaces for each depth before their names.
std::vector<std::vector<std::string>> summary_cells(Graph& graph);

/// The same for programs: {"nodes": […], "parameters": …, "trained": …}. A node has the members of
/// NodeInfo. "shape" has null where data decides; inputs name nodes by "id". "bytes" and "FLOPs"
/// are there where costs are known, and "inside" has the parts of composites with "nodes" of their
/// own.
nlohmann::json summary_json(Graph& graph);

/// "1.2K": a count as text.
std::string short_count(std::int64_t count);

}  // namespace treadle::graph
