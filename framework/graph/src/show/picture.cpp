#include <treadle/graph/picture.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/quoted_text.h>
#include <treadle/core/components/module_state.h>
#include <treadle/graph/cost.h>

// Graphs as Graphviz source, and as a table. Node names are prefixed with the path of the graph
// that they are in, since ids are unique only within a graph.

namespace treadle::graph {
namespace {

struct Look {
  std::string_view type;
  std::string_view shape;
  std::string_view fill;
};

constexpr Look kInputLook{"", "ellipse", "#dbeafe"};
constexpr Look kOutputLook{"", "ellipse", "#dcfce7"};
constexpr Look kStateLook{"", "cylinder", "#fef3c7"};
constexpr Look kFurtherOutputLook{"", "ellipse", "#f8fafc"};
constexpr Look kLayerLook{"", "box", "#f8fafc"};
// Kinds of layers that are told apart at a glance, by their names.
constexpr std::array kLooks{
    Look{"add", "invtriangle", "#ede9fe"},
    Look{"mean", "invtriangle", "#ede9fe"},
    Look{"multiply", "invtriangle", "#ede9fe"},
    Look{"cat", "invtriangle", "#ede9fe"},
    Look{"state_add", "invtriangle", "#ede9fe"},
    Look{"mixture_of_experts", "invtriangle", "#ede9fe"},
    Look{"batch_norm", "parallelogram", "#e0f2fe"},
    Look{"layer_norm", "parallelogram", "#e0f2fe"},
    Look{"rms_norm", "parallelogram", "#e0f2fe"},
    Look{"group_norm", "parallelogram", "#e0f2fe"},
    Look{"BatchNorm", "parallelogram", "#e0f2fe"},
    Look{"LayerNorm", "parallelogram", "#e0f2fe"},
    Look{"relu", "hexagon", "#fee2e2"},
    Look{"gelu", "hexagon", "#fee2e2"},
    Look{"silu", "hexagon", "#fee2e2"},
    Look{"tanh", "hexagon", "#fee2e2"},
    Look{"sigmoid", "hexagon", "#fee2e2"},
    Look{"softmax", "hexagon", "#fee2e2"},
    Look{"leaky_relu", "hexagon", "#fee2e2"},
    Look{"elu", "hexagon", "#fee2e2"},
};

const Look& look_of(const NodeInfo& node, bool is_output) {
  if (node.kind == NodeKind::kInput)
    return kInputLook;
  if (node.kind == NodeKind::kState)
    return kStateLook;
  if (node.kind == NodeKind::kOutput)
    return is_output ? kOutputLook : kFurtherOutputLook;
  const auto found = std::find_if(kLooks.begin(), kLooks.end(),
                                  [&](const Look& look) { return look.type == node.type; });
  if (found != kLooks.end())
    return *found;
  return is_output ? kOutputLook : kLayerLook;
}

std::string label_of(const NodeInfo& node) {
  std::string label = node.id;
  // dense_0 has said it already.
  if (!node.type.empty() && !node.id.starts_with(node.type))
    label += "\n" + node.type;
  if (!node.control.empty())
    label += "\n" + node.control;
  if (node.result)
    label += "\n" + node.result->text();
  if (node.parameters > 0)
    label += "\n" + short_count(node.parameters) + (node.frozen ? " frozen" : "");
  for (const std::string& tag : node.tags)
    label += "\n#" + tag;
  return label;
}

/// Where edges of a node begin and end: it may be a cluster.
struct Ends {
  std::vector<std::string> in;  // by input; the last is for those that follow
  std::string out;

  const std::string& at(std::size_t input) const { return in[std::min(input, in.size() - 1)]; }
};

/// Green at nothing, yellow at half of `most`, red at `most`: hue, saturation, value as Graphviz
/// reads them.
std::string heat(double share, double most) {
  const double part = most > 0 ? std::min(1.0, share / most) : 0;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f 0.450 1.000", (1 - part) / 3);
  return text.data();
}

class Drawing {
 public:
  std::string draw(const Graph& graph, const PictureOptions& options) {
    profile_ = options.profile;
    if (profile_ != nullptr) {
      for (const NodeTiming& node : profile_->nodes)
        slowest_ = std::max(slowest_, node.duration);
    }
    text_ =
        "digraph model {\n  rankdir=TB; compound=true; fontname=\"sans-serif\";\n"
        "  node [fontname=\"sans-serif\", fontsize=11, style=filled, fillcolor=\"#f8fafc\", "
        "color=\"#64748b\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#64748b\"];\n";
    if (!options.title.empty())
      text_ += "  label=" + dot_quoted(options.title) + "; labelloc=t;\n";
    draw_graph(graph, "", 1);
    return text_ + "}\n";
  }

 private:
  void line(int depth, const std::string& said) {
    text_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + said + "\n";
  }

  Ends draw_graph(const Graph& graph, const std::string& prefix, int depth) {
    const std::vector<NodeInfo>& nodes = graph.nodes();
    const std::set<std::size_t> outputs(graph.output_nodes().begin(), graph.output_nodes().end());
    std::vector<Ends> ends;
    std::map<std::size_t, std::vector<std::string>> levels;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      ends.push_back(draw_node(nodes[i], outputs.count(i) > 0 && prefix.empty(), prefix, depth));
      // A cluster cannot be given a rank, and a state stands best where it is used.
      if (nodes[i].inside.empty() && nodes[i].kind != NodeKind::kState)
        levels[nodes[i].level].push_back(ends.back().out);
    }
    if (prefix.empty() && profile_ != nullptr)
      draw_parallelism(depth);
    for (const auto& [level, names] : levels) {
      if (names.size() < 2)
        continue;
      std::string same = "{ rank=same;";
      for (const std::string& name : names)
        same += " " + dot_quoted(name) + ";";
      line(depth, same + " }");
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t input = 0; input < nodes[i].inputs.size(); ++input)
        draw_edge(nodes[i].inputs[input], ends, ends[i].at(input), depth);
    }
    Ends whole;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].kind == NodeKind::kInput)
        whole.in.push_back(ends[i].out);
    }
    whole.out = ends[graph.output_nodes().front()].out;
    return whole;
  }

  /// What the profile has of a node of the outermost graph.
  const NodeTiming* timing_of(const NodeInfo& node, const std::string& prefix) const {
    if (profile_ == nullptr || !prefix.empty())
      return nullptr;
    const auto found = std::find_if(profile_->nodes.begin(), profile_->nodes.end(),
                                    [&](const NodeTiming& timing) { return timing.id == node.id; });
    return found == profile_->nodes.end() ? nullptr : &*found;
  }

  void draw_parallelism(int depth) {
    std::string said;
    for (const LevelTiming& level : profile_->levels) {
      if (level.nodes < 2)
        continue;
      std::array<char, 64> text{};
      std::snprintf(text.data(), text.size(), "level %zu: %.1f at once\n", level.index,
                    level.parallelism());
      said += text.data();
    }
    if (!said.empty())
      line(depth, "\"parallelism\" [shape=note, label=" + dot_quoted(said) + "];");
  }

  void draw_edge(const NodeInput& input, const std::vector<Ends>& ends, const std::string& to,
                 int depth) {
    std::string style;
    if (input.kind == NodeInput::Kind::kReference)
      style = " [style=dashed, label=" + dot_quoted(input.port.substr(4)) + "]";
    if (input.kind == NodeInput::Kind::kState)
      style = " [style=dotted, constraint=false]";
    line(depth, dot_quoted(ends[input.node].out) + " -> " + dot_quoted(to) + style + ";");
  }

  Ends draw_node(const NodeInfo& node, bool is_output, const std::string& prefix, int depth) {
    const std::string name = prefix + node.id;
    std::string label = label_of(node);
    std::string fill;
    if (const NodeTiming* timing = timing_of(node, prefix)) {
      label += "\n" + short_time(timing->duration);
      fill = heat(static_cast<double>(timing->duration.count()),
                  static_cast<double>(slowest_.count()));
    }
    if (node.inside.empty()) {
      const Look& look = look_of(node, is_output);
      line(depth, dot_quoted(name) + " [label=" + dot_quoted(label) +
                      ", shape=" + std::string(look.shape) + ", fillcolor=" +
                      dot_quoted(fill.empty() ? std::string(look.fill) : fill) + "];");
      return {{name}, name};
    }
    line(depth, "subgraph " + dot_quoted("cluster_" + name) + " {");
    const std::string style =
        fill.empty() ? "style=rounded" : "style=\"rounded,filled\"; fillcolor=" + dot_quoted(fill);
    line(depth + 1, "label=" + dot_quoted(label) + "; labeljust=l; fontsize=11; " + style +
                        "; color=\"#94a3b8\";");
    std::vector<Ends> callees;
    for (const NodeInfo::Inside& inside : node.inside)
      callees.push_back(draw_inside(inside, name, depth + 1));
    const bool chooses = node.kind == NodeKind::kSwitch || node.kind == NodeKind::kMixture;
    Ends ends = chooses ? draw_choice(callees, name, depth + 1) : callees.front();
    if (node.kind == NodeKind::kLoop)
      draw_rounds(callees, depth + 1);
    line(depth, "}");
    return ends;
  }

  Ends draw_inside(const NodeInfo::Inside& inside, const std::string& owner, int depth) {
    const std::string prefix = inside.name.empty() ? owner + "/" : owner + "/" + inside.name + "/";
    if (inside.graph != nullptr)
      return draw_graph(*inside.graph, prefix, depth);
    const std::string name = owner + "/" + inside.name;
    line(depth, dot_quoted(name) + " [label=" + dot_quoted(inside.name + "\n" + inside.type) +
                    ", shape=box];");
    return {{name}, name};
  }

  void draw_rounds(const std::vector<Ends>& callees, int depth) {
    const Ends& body = callees.front();
    std::string back = body.out;
    if (callees.size() > 1) {
      line(depth, dot_quoted(body.out) + " -> " + dot_quoted(callees[1].at(0)) + ";");
      back = callees[1].out;
    }
    line(depth, dot_quoted(back) + " -> " + dot_quoted(body.at(0)) +
                    " [style=bold, constraint=false, label=\"again\"];");
  }

  Ends draw_choice(const std::vector<Ends>& callees, const std::string& name, int depth) {
    const std::string exit = name + "/exit";
    line(depth, dot_quoted(exit) + " [label=\"\", shape=point, width=0.12];");
    for (std::size_t i = 1; i < callees.size(); ++i) {
      line(depth, dot_quoted(callees[0].out) + " -> " + dot_quoted(callees[i].at(0)) +
                      " [label=" + dot_quoted(std::to_string(i - 1)) + "];");
      line(depth, dot_quoted(callees[i].out) + " -> " + dot_quoted(exit) + ";");
    }
    return {callees[0].in, exit};
  }

  const Profile* profile_ = nullptr;
  std::chrono::nanoseconds slowest_{0};
  std::string text_;
};

/// A file that goes with its object.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& content) {
    std::string name = (std::filesystem::temp_directory_path() / "treadle-picture-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0)
      throw StorageError("no temporary file can be written in " +
                         std::filesystem::temp_directory_path().string());
    path_ = name;
    const bool written =
        ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    ::close(file);
    if (!written)
      throw StorageError("the temporary file " + name + " cannot be written");
  }
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Row {
  std::array<std::string, 6> cells;  // name, layer, what it gives, parameters, memory, operations
};
constexpr std::size_t kTextCells = 3;  // the first of them; the others are numbers

std::string count_text(std::int64_t count) {
  return count == 0 ? "" : short_count(count);
}

/// `costs`: of the graph's nodes; empty where they are not known.
void add_rows(const Graph& graph, const std::vector<NodeCost>& costs, const std::string& indent,
              std::vector<Row>& rows) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const NodeInfo& node = graph.nodes()[i];
    const NodeCost cost = costs.empty() ? NodeCost() : costs[i];
    std::string tags;
    for (const std::string& tag : node.tags)
      tags += " #" + tag;
    rows.push_back(
        {{indent + node.id + tags, node.type + (node.control.empty() ? "" : ", " + node.control),
          node.result ? node.result->text() : "?",
          node.parameters == 0 ? ""
                               : std::to_string(node.parameters) + (node.frozen ? " frozen" : ""),
          count_text(cost.bytes), count_text(cost.operations)}});
    for (const NodeInfo::Inside& inside : node.inside) {
      const bool is_named = !inside.name.empty();
      if (is_named)
        rows.push_back({{indent + "  " + inside.name, inside.type}});
      if (inside.graph != nullptr)
        add_rows(*inside.graph, {}, indent + (is_named ? "    " : "  "), rows);
    }
  }
}

bool knows_inputs(const Graph& graph) {
  const std::vector<NodeInfo>& nodes = graph.nodes();
  return std::all_of(nodes.begin(), nodes.end(), [](const NodeInfo& node) {
    return node.kind != NodeKind::kInput || node.result.has_value();
  });
}

std::vector<NodeCost> costs_of(Graph& graph) {
  return knows_inputs(graph) ? graph::costs(graph) : std::vector<NodeCost>();
}

/// The head, and a row for each node.
std::vector<Row> rows_of(const Graph& graph, const std::vector<NodeCost>& costs) {
  std::vector<Row> rows{{{"node", "layer", "gives", "parameters", costs.empty() ? "" : "bytes",
                          costs.empty() ? "" : "FLOPs"}}};
  add_rows(graph, costs, "", rows);
  return rows;
}

struct ParameterCounts {
  std::int64_t all = 0;
  std::int64_t trained = 0;
};

ParameterCounts counts_of(const Graph& graph) {
  ParameterCounts counts;
  for (const at::Tensor& parameter : distinct_parameters(graph)) {
    counts.all += parameter.numel();
    counts.trained += parameter.requires_grad() ? parameter.numel() : 0;
  }
  return counts;
}

constexpr std::array kKindWords{"input", "state", "layer",  "graph",
                                "loop",  "map",   "switch", "output"};
constexpr std::array kInputKindWords{"stream", "reference", "state"};

nlohmann::json shape_of(const TensorSpec& spec) {
  nlohmann::json shape = nlohmann::json::array();
  for (const std::int64_t size : spec.sizes)
    shape.push_back(size == TensorSpec::kVaries ? nlohmann::json() : nlohmann::json(size));
  return shape;
}

/// `costs`: of the graph's nodes; empty where they are not known.
nlohmann::json nodes_of(const Graph& graph, const std::vector<NodeCost>& costs) {
  using nlohmann::json;
  json nodes = json::array();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const NodeInfo& info = graph.nodes()[i];
    json node{{"id", info.id},
              {"type", info.type},
              {"kind", kKindWords.at(static_cast<std::size_t>(info.kind))},
              {"level", info.level},
              {"tags", info.tags},
              {"parameters", info.parameters},
              {"frozen", info.frozen},
              {"inputs", json::array()}};
    for (const NodeInput& input : info.inputs) {
      node["inputs"].push_back(
          {{"id", graph.nodes()[input.node].id},
           {"port", input.port},
           {"kind", kInputKindWords.at(static_cast<std::size_t>(input.kind))}});
    }
    if (info.result) {
      node["shape"] = shape_of(*info.result);
      node["dtype"] = info.result->dtype_text();
    }
    if (!info.control.empty())
      node["control"] = info.control;
    if (!info.attributes.empty())
      node["attributes"] = json::parse(info.attributes);
    if (!costs.empty()) {
      node["bytes"] = costs[i].bytes;
      node["FLOPs"] = costs[i].operations;
    }
    for (const NodeInfo::Inside& inside : info.inside) {
      json part{{"name", inside.name}, {"type", inside.type}};
      if (inside.graph != nullptr)
        part["nodes"] = nodes_of(*inside.graph, {});
      node["inside"].push_back(std::move(part));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

nlohmann::json summary_json(Graph& graph) {
  const ParameterCounts counts = counts_of(graph);
  return {{"nodes", nodes_of(graph, costs_of(graph))},
          {"parameters", counts.all},
          {"trained", counts.trained}};
}

std::string short_count(std::int64_t count) {
  struct Unit {
    double size;
    const char* name;
  };
  constexpr std::array kUnits{Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e3, "K"}};
  for (const Unit& unit : kUnits) {
    if (static_cast<double>(count) < unit.size)
      continue;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f%s", static_cast<double>(count) / unit.size,
                  unit.name);
    return text.data();
  }
  return std::to_string(count);
}

std::string dot(const Graph& graph, const PictureOptions& options) {
  return Drawing().draw(graph, options);
}

std::string dot_with_profile(const Graph& graph, const GraphState& state,
                             const std::string& title) {
  if (state.last_profile() == nullptr)
    throw UsageError("no forward was timed; call profile(true) before one");
  return dot(graph, {title, state.last_profile()});
}

std::string svg(const std::string& dot_source) {
  const ScratchFile source(dot_source);
  const std::string command = "dot -Tsvg '" + source.path() + "' 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr)
    throw StorageError("the program dot cannot be started");
  std::string drawn;
  std::array<char, 65536> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    drawn.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw UsageError(
        "a picture is drawn by Graphviz's program dot, which is not there; install graphviz");
  if (status != 0)
    throw UsageError("Graphviz's program dot failed: " + drawn.substr(0, drawn.find('\n')));
  return drawn;
}

std::string summary(Graph& graph) {
  const std::vector<NodeCost> costs = costs_of(graph);
  const std::vector<Row> rows = rows_of(graph, costs);
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row.cells[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string shown;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string room(widths[i] - row.cells[i].size(), ' ');
      shown += i < kTextCells ? row.cells[i] + room : room + row.cells[i];
      shown += "  ";
    }
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + "\n";
  }
  const ParameterCounts counts = counts_of(graph);
  text += std::to_string(counts.all) + " parameters";
  if (counts.trained != counts.all)
    text += ", " + std::to_string(counts.trained) + " of them trained";
  if (!costs.empty()) {
    NodeCost sum;
    for (const NodeCost& cost : costs) {
      sum.bytes += cost.bytes;
      sum.operations += cost.operations;
    }
    text += "; for a row, " + short_count(sum.bytes) + " bytes of values and " +
            short_count(sum.operations) + " FLOPs";
  }
  return text + "\n";
}

std::vector<std::vector<std::string>> summary_cells(Graph& graph) {
  const std::vector<NodeCost> costs = costs_of(graph);
  const std::size_t width = costs.empty() ? 4 : 6;
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : rows_of(graph, costs))
    cells.emplace_back(row.cells.begin(), row.cells.begin() + static_cast<std::ptrdiff_t>(width));
  return cells;
}

}  // namespace treadle::graph
