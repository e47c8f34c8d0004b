#include "graft.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/flow_nodes.h>
#include <treadle/host/run/run_folder.h>
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
  Json document;
  Json steps;
  std::vector<std::vector<std::string>> ids;  ///< of the nodes of each step
  Json inputs;                                ///< shapes by port
  std::set<std::string> weights;              ///< names in its file
};

/// Steps of a run, and how the nodes of the run that have weights are called in them.
struct Branch {
  const SourceRun* run = nullptr;
  Json steps = Json::array();
  std::vector<std::vector<std::string>> from;  ///< for each step
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

SourceRun read_run(const Runtime& runtime, const std::string& shown) {
  const fs::path folder(shown);
  const fs::path best = RunFolder::best_document_of(folder);
  SourceRun run;
  run.shown = shown;
  run.document = read_json(fs::exists(best) ? best : RunFolder::document_of(folder));
  run.inputs = read_json(RunFolder::result_of(folder)).at("model_info").at("input_shape");
  const Json& model = run.document.at("model");
  if (!model.contains("flow")) {
    throw UsageError(shown + ": its model is " + quote_value(model.at("use")) +
                     ", and a graft takes nodes of flows; train a model {\"use\": \"flow\", …}");
  }
  for (const Json& step : model.at("flow"))
    run.steps.push_back(step_object(step));
  run.ids = graph::node_ids(graph::read_steps(Config(), run.steps, "", runtime.registry()));
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

std::vector<std::string> names_in(const SourceRun& run) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (is_use(run.steps[i], "split") && run.steps[i].contains("name"))
      names.push_back(run.steps[i].at("name"));
    names.insert(names.end(), run.ids[i].begin(), run.ids[i].end());
  }
  return names;
}

/// The steps in front of the one with this index.
Branch steps_before(const SourceRun& run, std::size_t step) {
  Branch branch{&run, Json::array(), {}};
  for (std::size_t i = 0; i < step; ++i) {
    branch.steps.push_back(run.steps[i]);
    branch.from.push_back(run.ids[i]);
  }
  return branch;
}

/// Behind the steps in front of a split, one of its branches.
Branch branch_of_split(const SourceRun& run, std::size_t step, std::size_t index) {
  Branch branch = steps_before(run, step);
  const Json& split = run.steps[step];
  Json part{{"use", "flow"}, {"flow", split.at("branches").at(index)}};
  if (split.contains("using"))
    part["using"] = split.at("using");
  branch.steps.push_back(std::move(part));
  branch.from.push_back({run.ids[step][index]});
  return branch;
}

std::vector<Branch> branches_of(const SourceRun& run, const std::string& node) {
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const Json& step = run.steps[i];
    const std::vector<std::string>& ids = run.ids[i];
    const auto found = std::find(ids.begin(), ids.end(), node);
    if (!is_use(step, "split")) {
      if (found == ids.end())
        continue;
      return {steps_before(run, i + 1)};
    }
    if (found != ids.end())
      return {branch_of_split(run, i, static_cast<std::size_t>(found - ids.begin()))};
    if (step.value("name", "") != node)
      continue;
    std::vector<Branch> branches;
    for (std::size_t index = 0; index < ids.size(); ++index)
      branches.push_back(branch_of_split(run, i, index));
    return branches;
  }
  const std::vector<std::string> names = names_in(run);
  throw UsageError(run.shown + ": its model has no node " + quote_text(node) +
                   did_you_mean(node, names) + "; there are " + name_list(names));
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
  Branch taken{branch.run, Json::array(), {}};
  if (!ports.empty()) {
    taken.steps.push_back(input_step(ports));
    taken.from.emplace_back();
  }
  for (std::size_t i = 0; i < branch.steps.size(); ++i) {
    if (is_use(branch.steps[i], "input"))
      continue;
    taken.steps.push_back(branch.steps[i]);
    taken.from.push_back(branch.from[i]);
  }
  branch = std::move(taken);
}

bool has_weights(const SourceRun& run, const std::string& node) {
  const auto next = run.weights.lower_bound(node + ".");
  return next != run.weights.end() && next->starts_with(node + ".");
}

/// One entry of `weights` for each node of the branch that has any; `name`: the branch's node.
Json weights_of(const Runtime& runtime, const Branch& branch, const std::string& name,
                const fs::path& file) {
  const graph::FlowBuilder flow = graph::read_steps(Config(), branch.steps, "", runtime.registry());
  const std::vector<std::vector<std::string>> to = graph::node_ids(flow);
  const bool is_single = graph::is_single_part(flow);
  Json weights = Json::array();
  for (std::size_t step = 0; step < branch.from.size(); ++step) {
    for (std::size_t i = 0; i < branch.from[step].size(); ++i) {
      const std::string& from = branch.from[step][i];
      if (has_weights(*branch.run, from)) {
        weights.push_back({{"path", file.string()},
                           {"from", from},
                           {"to", is_single ? name : name + "." + to[step][i]}});
      }
    }
  }
  return weights;
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
    runs.push_back(read_run(runtime, folder));
  std::vector<Branch> branches;
  for (const SourceRun& run : runs) {
    expect_same_inputs(runs.front(), run);
    for (const char* key : {"data", "transforms"}) {
      if (run.document.value(key, Json()) != runs.front().document.value(key, Json())) {
        note(run.shown + " was trained with other " + key + " than " + runs.front().shown +
             ", whose " + key + " the document has");
      }
    }
    for (Branch& branch : branches_of(run, options.node))
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
    for (Json& entry : weights_of(runtime, branch, name, path))
      weights.push_back(std::move(entry));
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
