#include "commands/graft.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/flow_nodes.h>
#include <treadle/graph/graph.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/workflow_run.h>
#include <treadle/tensor/safetensors.h>

// Works on documents: steps are copied as they are written, and only the ids of nodes, with which
// the names of parameters begin, are asked of the graph library.

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The step with the branches, and of the nodes in a frozen branch the one with all of them.
constexpr const char* kGrafts = "grafts";
constexpr const char* kTrained = "trained";

struct SourceRun {
  std::string shown;  ///< as it was typed
  fs::path folder;
  Json document;
  Json steps;
  Json inputs;                    ///< shapes by port
  std::set<std::string> weights;  ///< names in its file
};

/// The steps of a run's flow, or of one within it.
struct Level {
  const SourceRun* run = nullptr;
  std::string around;  ///< "hive_0.", with which names of its nodes begin in the run
  Json steps = Json::array();
  std::vector<std::vector<std::string>> ids;  ///< of the nodes of each step
};

/// Steps of a run, and how the nodes of the run that have weights are called in them.
struct Branch {
  const SourceRun* run = nullptr;
  Json steps = Json::array();
  std::vector<std::vector<std::string>> from;         ///< for each step
  std::vector<std::shared_ptr<const Branch>> inside;  ///< of a step that was cut; null for others
};

Json step_object(const Json& step) {
  return step.is_string() ? Json{{"use", step}} : step;
}

bool is_use(const Json& step, std::string_view name) {
  const std::string use = step.at("use").get<std::string>();
  return use.substr(use.rfind('/') + 1) == name;
}

Json read_json(const fs::path& file) {
  if (!fs::exists(file)) {
    throw StorageError(file.string() +
                       ": no such file; a graft takes the folders of finished runs: " +
                       "workflow-runner runs list");
  }
  return Document::read(file)->value();
}

SourceRun read_run(const std::string& shown) {
  const fs::path folder(shown);
  const fs::path best = RunFolder::best_document_of(folder);
  SourceRun run;
  run.shown = shown;
  run.folder = folder;
  run.document = read_json(fs::exists(best) ? best : RunFolder::document_of(folder));
  run.inputs = read_json(RunFolder::result_of(folder)).at("model_info").at("input_shape");
  const Json& model = run.document.at("model");
  if (!model.contains("flow")) {
    throw UsageError(shown + ": its model is " + quote_value(model.at("use")) +
                     ", and a graft takes nodes of flows; train a model {\"use\": \"flow\", …}");
  }
  for (const Json& step : model.at("flow"))
    run.steps.push_back(step_object(step));
  const fs::path weights = RunFolder::weights_of(folder);
  if (!fs::exists(weights)) {
    throw StorageError(weights.string() +
                       ": no such file; an ensemble, and folds without a refit, leave no model of "
                       "their own");
  }
  for (const auto& [name, unused] : read_safetensors(weights).tensors)
    run.weights.insert(name);
  return run;
}

Level level_of(const Runtime& runtime, const SourceRun& run, std::string around,
               const Json& steps) {
  Level level{&run, std::move(around), Json::array(), {}};
  for (const Json& step : steps)
    level.steps.push_back(step_object(step));
  level.ids = graph::node_ids(graph::read_steps(Config(), level.steps, "", runtime.registry()));
  return level;
}

std::vector<std::string> names_in(const Level& level) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < level.steps.size(); ++i) {
    if (is_use(level.steps[i], "split") && level.steps[i].contains("name"))
      names.push_back(level.around + level.steps[i].at("name").get<std::string>());
    for (const std::string& id : level.ids[i])
      names.push_back(level.around + id);
  }
  return names;
}

/// The steps in front of the one with this index.
Branch steps_before(const Level& level, std::size_t step) {
  Branch branch{level.run, Json::array(), {}, {}};
  for (std::size_t i = 0; i < step; ++i) {
    branch.steps.push_back(level.steps[i]);
    branch.from.push_back(level.ids[i]);
    for (std::string& name : branch.from.back())
      name.insert(0, level.around);
    branch.inside.emplace_back();
  }
  return branch;
}

/// Behind the steps in front of a step, what is left of it, which is a flow.
Branch with_flow(const Level& level, std::size_t step, Json flow, std::string from,
                 std::shared_ptr<const Branch> inside) {
  Branch branch = steps_before(level, step);
  if (level.steps[step].contains("using"))
    flow["using"] = level.steps[step].at("using");
  branch.steps.push_back(std::move(flow));
  branch.from.push_back({level.around + std::move(from)});
  branch.inside.push_back(std::move(inside));
  return branch;
}

/// Behind the steps in front of a split, one of its branches.
Branch branch_of_split(const Level& level, std::size_t step, std::size_t index) {
  return with_flow(level, step,
                   {{"use", "flow"}, {"flow", level.steps[step].at("branches").at(index)}},
                   level.ids[step][index], nullptr);
}

/// The steps that a graph builder wrote for a node of a run's model.
Json built_steps(const Runtime& runtime, const SourceRun& run, const std::string& node) {
  const ResolvedWorkflow workflow = resolve_workflow(
      Document::from_json(run.document, RunFolder::document_of(run.folder).parent_path()),
      runtime.schemas());
  const std::shared_ptr<Model> model = untrained_model(runtime, workflow);
  const auto* graph = dynamic_cast<const graph::Graph*>(model.get());
  const auto node_in = [](const graph::Graph& owner, const std::string& id) {
    const auto found = std::find_if(owner.nodes().begin(), owner.nodes().end(),
                                    [&](const graph::NodeInfo& info) { return info.id == id; });
    return found == owner.nodes().end() || found->inside.empty() ? nullptr
                                                                 : found->inside.front().graph;
  };
  for (std::size_t begin = 0; graph != nullptr && begin < node.size();) {
    const std::size_t dot = std::min(node.find('.', begin), node.size());
    graph = node_in(*graph, node.substr(begin, dot - begin));
    begin = dot + 1;
  }
  TREADLE_EXPECTS(graph != nullptr && graph->built_from() != nullptr,
                  "a step that names a graph builder has a graph that it built");
  return graph::write_flow(*graph->built_from()).at("flow");
}

/// The flow that a node is: a step `flow`, a branch of a split, or what a graph builder wrote.
std::optional<Json> flow_of(const Runtime& runtime, const Level& level, std::size_t step,
                            std::size_t index) {
  const Json& written = level.steps[step];
  if (is_use(written, "flow"))
    return written.at("flow");
  if (is_use(written, "split"))
    return written.at("branches").at(index);
  if (is_use(written, "graph"))
    return built_steps(runtime, *level.run, level.around + level.ids[step][index]);
  return std::nullopt;
}

std::vector<Branch> branches_of(const Runtime& runtime, const Level& level,
                                const std::string& node);

/// Where `node` is one of the flow that a node is: with that flow up to it.
std::vector<Branch> branches_within(const Runtime& runtime, const Level& level, std::size_t step,
                                    std::size_t index, const std::string& node) {
  const std::string& id = level.ids[step][index];
  if (!node.starts_with(id + "."))
    return {};
  const std::optional<Json> flow = flow_of(runtime, level, step, index);
  if (!flow)
    return {};
  std::vector<Branch> branches;
  const Level inner = level_of(runtime, *level.run, level.around + id + ".", *flow);
  for (Branch& cut : branches_of(runtime, inner, node.substr(id.size() + 1))) {
    Json part{{"use", "flow"}, {"name", id}, {"flow", cut.steps}};
    branches.push_back(with_flow(level, step, std::move(part), id,
                                 std::make_shared<const Branch>(std::move(cut))));
  }
  return branches;
}

std::vector<Branch> branches_of(const Runtime& runtime, const Level& level,
                                const std::string& node) {
  for (std::size_t i = 0; i < level.steps.size(); ++i) {
    const Json& step = level.steps[i];
    const std::vector<std::string>& ids = level.ids[i];
    const auto found = std::find(ids.begin(), ids.end(), node);
    if (found != ids.end() && !is_use(step, "split"))
      return {steps_before(level, i + 1)};
    if (found != ids.end())
      return {branch_of_split(level, i, static_cast<std::size_t>(found - ids.begin()))};
    for (std::size_t index = 0; index < ids.size(); ++index) {
      if (std::vector<Branch> within = branches_within(runtime, level, i, index, node);
          !within.empty())
        return within;
    }
    if (!is_use(step, "split") || step.value("name", "") != node)
      continue;
    std::vector<Branch> branches;
    for (std::size_t index = 0; index < ids.size(); ++index)
      branches.push_back(branch_of_split(level, i, index));
    return branches;
  }
  const std::vector<std::string> names = names_in(level);
  const std::string whole = level.around + node;
  throw UsageError(level.run->shown + ": its model has no node " + quote_text(whole) +
                   did_you_mean(whole, names) + "; it has " + name_list(names));
}

/// What the branches use beside the stream.
struct Ports {
  std::set<std::string> named;  ///< by a step `input`
  std::set<std::string> all;
};

Ports ports_of(const std::vector<Branch>& branches) {
  Ports ports;
  for (const Branch& branch : branches) {
    for (const Json& step : branch.steps) {
      for (const Json& name : is_use(step, "input") ? step.at("names") : Json::array())
        ports.named.insert(name.get<std::string>());
      for (const Json& name : step.value("using", Json::array())) {
        if (branch.run->inputs.contains(name.get<std::string>()))
          ports.all.insert(name.get<std::string>());
      }
    }
  }
  ports.all.insert(ports.named.begin(), ports.named.end());
  return ports;
}

Json input_step(const std::set<std::string>& names) {
  return {{"use", "input"}, {"names", names}};
}

/// In place of the steps `input` of a whole flow, the one of a flow within another.
void take_ports(Branch& branch, const std::set<std::string>& ports) {
  Branch taken{branch.run, Json::array(), {}, {}};
  if (!ports.empty()) {
    taken.steps.push_back(input_step(ports));
    taken.from.emplace_back();
    taken.inside.emplace_back();
  }
  for (std::size_t i = 0; i < branch.steps.size(); ++i) {
    if (is_use(branch.steps[i], "input"))
      continue;
    taken.steps.push_back(branch.steps[i]);
    taken.from.push_back(branch.from[i]);
    taken.inside.push_back(branch.inside[i]);
  }
  branch = std::move(taken);
}

bool has_weights(const SourceRun& run, const std::string& node) {
  const auto next = run.weights.lower_bound(node + ".");
  return next != run.weights.end() && next->starts_with(node + ".");
}

/// Adds an entry of `weights` for each node of the branch that has any; `name`: the branch's node.
void add_weights(const Runtime& runtime, const Branch& branch, const std::string& name,
                 const fs::path& file, Json& weights) {
  const graph::FlowBuilder flow = graph::read_steps(Config(), branch.steps, "", runtime.registry());
  const std::vector<std::vector<std::string>> to = graph::node_ids(flow);
  const bool is_single = graph::is_single_part(flow);
  for (std::size_t step = 0; step < branch.from.size(); ++step) {
    for (std::size_t i = 0; i < branch.from[step].size(); ++i) {
      const std::string& from = branch.from[step][i];
      const std::string node = is_single ? name : name + "." + to[step][i];
      if (branch.inside[step] != nullptr) {
        add_weights(runtime, *branch.inside[step], node, file, weights);
      } else if (has_weights(*branch.run, from)) {
        weights.push_back({{"path", file.string()}, {"from", from}, {"to", node}});
      }
    }
  }
}

Json merged(const Json& branches, Json with) {
  return Json::array({{{"use", "split"}, {"name", kGrafts}, {"branches", branches}},
                      {{"use", "merge"}, {"with", std::move(with)}}});
}

/// In the smallest square that has room for all, row by row.
Json merged_by_grid(const Json& branches) {
  std::size_t side = 1;
  while (side * side < branches.size())
    ++side;
  Json positions = Json::array();
  for (std::size_t i = 0; i < branches.size(); ++i)
    positions.push_back({i / side, i % side, 0});
  return merged(branches,
                {{"use", "grid_cat"}, {"grid", {side, side, 1}}, {"positions", positions}});
}

/// A sum whose weights, by a dense layer and softmax, are those of each row.
Json gated(const Json& branches) {
  return Json::array({{{"use", "mixture_of_experts"},
                       {"name", kGrafts},
                       {"router", {{"use", "softmax_router"}, {"num_experts", branches.size()}}},
                       {"experts", branches}}});
}

using Combine = Json (*)(const Json& branches);
const std::map<std::string, Combine>& combinations() {
  static const std::map<std::string, Combine> kAll{{"add",
                                                    [](const Json& branches) {
                                                      return merged(branches, {{"use", "add"}});
                                                    }},
                                                   {"cat",
                                                    [](const Json& branches) {
                                                      return merged(branches, {{"use", "cat"}});
                                                    }},
                                                   {"gate", gated},
                                                   {"grid_cat", merged_by_grid},
                                                   {"mean", [](const Json& branches) {
                                                      return merged(branches, {{"use", "mean"}});
                                                    }}};
  return kAll;
}

void expect_same_inputs(const SourceRun& first, const SourceRun& other) {
  if (other.inputs != first.inputs) {
    throw UsageError(other.shown + ": its model takes inputs of the sizes " + other.inputs.dump() +
                     ", and that of " + first.shown + " takes " + first.inputs.dump() +
                     "; graft runs on data of the same columns");
  }
}

/// The data without its files, whose paths are absolute in a run's document: which columns of them
/// are inputs, and how they are read.
Json without_files(Json data) {
  if (data.is_string() && data.get<std::string>().starts_with("/"))
    return {};
  if (data.is_structured()) {
    for (Json& value : data)
      value = without_files(std::move(value));
  }
  return data;
}

/// Weights mean something for the columns that they were trained on, as transforms leave them.
void expect_same_columns(const SourceRun& first, const SourceRun& other) {
  const auto refuse = [&](const char* key) {
    throw UsageError(other.shown + " was trained with other " + key + " than " + first.shown +
                     ", and a branch of a graft gets those of the first; train both on the same " +
                     key);
  };
  if (without_files(other.document.at("data")) != without_files(first.document.at("data")))
    refuse("data");
  if (other.document.value("transforms", Json()) != first.document.value("transforms", Json()))
    refuse("transforms");
}

}  // namespace

std::vector<std::string> graft_combinations() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : combinations())
    names.push_back(name);
  return names;
}

Json graft_document(const Runtime& runtime, const std::vector<std::string>& folders,
                    const GraftOptions& options,
                    const std::function<void(const std::string&)>& note) {
  const auto combine = combinations().find(options.combine);
  if (combine == combinations().end()) {
    const std::vector<std::string> names = graft_combinations();
    throw UsageError("--combine: expected " + name_list(names) + ", got " +
                     quote_text(options.combine) + did_you_mean(options.combine, names));
  }
  std::vector<SourceRun> runs;
  for (const std::string& folder : folders)
    runs.push_back(read_run(folder));
  std::vector<Branch> branches;
  for (const SourceRun& run : runs) {
    expect_same_inputs(runs.front(), run);
    expect_same_columns(runs.front(), run);
    if (run.document.at("data") != runs.front().document.at("data")) {
      note(run.shown + " was trained with another file than " + runs.front().shown +
           ", whose data the document has");
    }
    const Level whole = level_of(runtime, run, "", run.steps);
    for (Branch& branch : branches_of(runtime, whole, options.node))
      branches.push_back(std::move(branch));
  }
  if (branches.size() < 2) {
    throw UsageError("a graft has two branches or more, and " + quote_text(options.node) + " of " +
                     runs.front().shown + " is one; name another run, or the name of a split");
  }
  const Ports ports = ports_of(branches);

  Json written = Json::array();
  Json weights = Json::array();
  for (std::size_t i = 0; i < branches.size(); ++i) {
    Branch& branch = branches[i];
    take_ports(branch, ports.all);
    std::string name = std::string(kGrafts) + "_" + std::to_string(i);
    Json steps = branch.steps;
    if (options.is_frozen) {
      name += std::string(".") + kTrained;
      Json whole{{"use", "flow"}, {"name", kTrained}, {"flow", steps}, {"frozen", true}};
      steps = Json::array();
      if (!ports.all.empty()) {
        whole["using"] = ports.all;
        steps.push_back(input_step(ports.all));
      }
      steps.push_back(std::move(whole));
    }
    written.push_back(std::move(steps));
    const fs::path file = RunFolder::weights_of(branch.run->shown);
    const fs::path path =
        file.is_absolute() ? file
                           : fs::absolute(file).lexically_proximate(fs::absolute(options.folder));
    add_weights(runtime, branch, name, path, weights);
  }

  Json flow = combine->second(written);
  if (!ports.all.empty())
    flow.front()["using"] = ports.all;
  if (!ports.named.empty())
    flow.insert(flow.begin(), input_step(ports.named));
  flow.push_back({{"use", "head"}});
  Json document = runs.front().document;
  Json model{{"use", document.at("model").at("use")}, {"flow", std::move(flow)}};
  if (!weights.empty())
    model["weights"] = std::move(weights);
  document["model"] = std::move(model);
  document["name"] = document.value("name", "run") + "-graft";
  document.erase("search");
  return document;
}

}  // namespace treadle::cli
