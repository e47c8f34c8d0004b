#include "random_flow.h"

#include <algorithm>
#include <array>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/flow_document.h>
#include <treadle/tensor/task_random.h>

namespace treadle::testing {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostElements = 2000;  // of a row
constexpr int kMostDepth = 3;

std::int64_t elements(const TensorSpec& spec) {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < spec.sizes.size(); ++i)
    product *= spec.sizes[i];
  return product;
}

/// Rows of numbers, small enough for many of them.
bool is_handy(const TensorSpec& spec) {
  if (spec.sizes.size() < 2 || spec.sizes[0] != TensorSpec::kVaries ||
      !at::isFloatingType(spec.dtype) || elements(spec) > kMostElements)
    return false;
  return std::all_of(spec.sizes.begin() + 1, spec.sizes.end(),
                     [](std::int64_t size) { return size > 0; });
}

std::vector<std::int64_t> row_of(const TensorSpec& spec) {
  return {spec.sizes.begin() + 1, spec.sizes.end()};
}

bool says_a_flow(const json& schema) {
  const json& properties = schema.value("properties", json::object());
  return std::any_of(properties.begin(), properties.end(), [](const json& property) {
    return property.contains("x-treadle-type") ||
           property.value("items", json::object()).contains("x-treadle-type");
  });
}

/// Of layers that have outputs beside the first.
const std::map<std::string, std::vector<std::string>> kFurtherOutputs{
    {"rnn", {"h_n"}}, {"gru", {"h_n"}}, {"lstm", {"h_n", "c_n"}}, {"attention", {"attn_weights"}}};

/// Values whose parts belong together, which a schema cannot say.
const std::map<std::string, std::vector<json>> kWholeValues{
    {"cell",
     {json::array({{{"use", "dense"}, {"out_features", 4}}, "tanh"}),
      json::array({"layer_norm", "gelu"})}},
    {"columns", {1, 2}},
    {"layer",
     {{{"use", "dense"}, {"out_features", 4}},
      {{"use", "dense"}, {"out_features", 3}, {"bias", false}},
      {{"use", "conv1d"}, {"out_channels", 3}, {"kernel_size", 1}},
      {{"use", "conv_transpose2d"}, {"out_channels", 2}, {"kernel_size", 2}}}},
    {"replace",
     {json::array({{{"at", {0, 0, 1}}, {"with", "sigmoid"}}}),
      json::array({{{"at", {0, 1, 0}}, {"with", {{"use", "dense"}, {"out_features", 5}}}}})}},
    {"value", {0.5, -1, json::array({1, -2, 0.5}), json::array({{1, 2}, {3, -4}})}},
    {"bins", {3, json::array({-0.5, 0.25, 2}), json::array({0, 1})}},
    {"rotary",
     {json::object(),
      {{"dim", 2}, {"theta", 50}},
      {{"scaling", "linear"}, {"factor", 3}},
      {{"scaling", "ntk"}, {"factor", 3}, {"theta", 100}},
      {{"scaling", "llama3"},
       {"factor", 2},
       {"low_freq_factor", 1},
       {"high_freq_factor", 4},
       {"original_max_position_embeddings", 8}}}}};

}  // namespace

RandomFlow::RandomFlow(const PluginRegistry& registry, std::uint64_t seed)
    : registry_(registry), seed_(seed), random_(seed) {
  learn_components();
  const c10::ScalarType dtype = chance(70) ? at::kFloat : at::kDouble;
  constexpr std::int64_t kRows = TensorSpec::kVaries;
  const std::vector<TensorSpec> inputs{TensorSpec({kRows, 6}, dtype), TensorSpec({kRows, 5}, dtype),
                                       TensorSpec({kRows, 4, 3}, dtype),
                                       TensorSpec({kRows, 2, 5, 5}, dtype),
                                       TensorSpec({kRows, 4}, at::kLong)};
  grow_from(one_of(inputs));
}

RandomFlow::RandomFlow(const PluginRegistry& registry, std::uint64_t seed, TensorSpec input)
    : registry_(registry), seed_(seed), random_(seed) {
  learn_components();
  grow_from(std::move(input));
}

void RandomFlow::learn_components() {
  for (const std::string& name : registry_.names<LayerFactory>()) {
    json schema = registry_.describe<LayerFactory>(name).schema;
    // Verbs have a function each, and an embedding takes the input's categories, not numbers.
    if (!says_a_flow(schema) && name != "merge" && name != "at" && name != "input" &&
        name != "embedding")
      layers_.push_back({name, std::move(schema)});
  }
  for (const std::string& name : registry_.names<GraphBuilder>())
    builders_.push_back({name, registry_.describe<GraphBuilder>(name).schema});
}

void RandomFlow::grow_from(TensorSpec input) {
  Scope scope;
  scope.inputs = {std::move(input)};
  input_ = scope.now = scope.inputs[0];
  if (input_.dtype == at::kLong) {
    adds(scope, {{{"use", "embedding"},
                  {"num_embeddings", kCategories},
                  {"embedding_dim", static_cast<std::int64_t>(1 + below(7))}}});
  }
  steps_ = grown(std::move(scope)).steps;
}

std::shared_ptr<graph::Graph> RandomFlow::build(const json& steps,
                                                std::vector<TensorSpec> inputs) const {
  LayerSpec spec;
  spec.dtype = inputs[0].dtype == at::kLong ? at::kFloat : inputs[0].dtype;
  spec.inputs = std::move(inputs);
  spec.outputs = {{"output", {3}}};
  const TaskRandom random(seed_);
  return graph::read_steps(Config(), steps, "", registry_).build(spec);
}

bool RandomFlow::adds(Scope& scope, const json& steps) {
  json all = scope.steps;
  all.insert(all.end(), steps.begin(), steps.end());
  if (steps.empty())
    return false;
  try {
    const auto graph = build(all, scope.inputs);
    const auto results = graph->results();
    if (results.size() != 1 || !results[0] || !is_handy(*results[0]))
      return false;
    scope.now = *results[0];
    for (const std::string& tag : graph->tags()) {
      const auto& result = graph->nodes()[*graph->find_tag(tag)].result;
      if (result && is_handy(*result))
        scope.tags[tag] = *result;
    }
  } catch (const ContractViolation& error) {
    surprises_.push_back(std::string(error.what()) + "\n" + all.dump());
    return false;
  } catch (const Error&) {
    return false;
  } catch (const std::exception& error) {
    surprises_.push_back(std::string(error.what()) + "\n" + all.dump());
    return false;
  }
  scope.steps = std::move(all);
  return true;
}

/// Within the schema, and small: sizes of 1 to 8, places of -3 to 3.
json RandomFlow::value(const json& schema, const Scope& scope) {
  if (schema.contains("enum"))
    return schema["enum"][below(schema["enum"].size())];
  if (schema.contains("anyOf"))
    return value(schema["anyOf"][below(schema["anyOf"].size())], scope);
  if (schema.value("x-treadle-component", "") == "graph" && !builders_.empty())
    return with_parameters(one_of(builders_), scope);
  const json type = schema.value("type", json("string"));
  const std::string is = type.is_array() ? type[below(type.size())] : type;
  if (is == "boolean")
    return chance(50);
  if (is == "integer") {
    const auto least = std::max<std::int64_t>(schema.value("minimum", std::int64_t{-3}), -3);
    const auto most =
        std::min<std::int64_t>(schema.value("maximum", std::int64_t{8}), least < 0 ? 3 : least + 7);
    return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(most - least) + 1));
  }
  if (is == "number") {
    const double usual = schema.value("default", 0.5);
    const double least =
        std::max(schema.value("exclusiveMinimum", schema.value("minimum", -1.0)), usual - 1);
    const double most =
        std::min(schema.value("exclusiveMaximum", schema.value("maximum", least + 1)), usual + 1);
    return least + (most - least) * static_cast<double>(1 + below(15)) / 16;
  }
  if (is == "array") {
    const std::size_t least = schema.value("minItems", std::size_t{1});
    json items = json::array();
    for (std::size_t i = least + below(3); i-- > 0 || items.size() < least;)
      items.push_back(value(schema.value("items", json::object()), scope));
    return items;
  }
  if (is == "object")
    return object(schema, scope);
  return known_tag(scope).value_or("nobody");
}

json RandomFlow::object(const json& schema, const Scope& scope) {
  json drawn = json::object();
  const json required = schema.value("required", json::array());
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, property] : properties.items()) {
    const bool must = std::find(required.begin(), required.end(), key) != required.end();
    if (key == "tied_to" || (!must && !chance(30)))
      continue;
    const auto whole = kWholeValues.find(key);
    drawn[key] = whole == kWholeValues.end() ? value(property, scope) : one_of(whole->second);
  }
  return drawn;
}

json RandomFlow::with_parameters(const Kind& kind, const Scope& scope) {
  json step = object(kind.schema, scope);
  step["use"] = kind.name;
  return step;
}

std::optional<std::string> RandomFlow::known_tag(const Scope& scope) {
  if (scope.tags.empty())
    return std::nullopt;
  return std::next(scope.tags.begin(), static_cast<std::ptrdiff_t>(below(scope.tags.size())))
      ->first;
}

json RandomFlow::leaf(const Scope& scope) {
  json step = with_parameters(one_of(layers_), scope);
  if (const auto tag = known_tag(scope); tag && chance(40))
    step["using"] = {*tag};
  if (chance(40))
    step["tag"] = new_name("t");
  if (const auto outputs = kFurtherOutputs.find(step["use"]);
      outputs != kFurtherOutputs.end() && chance(60)) {
    step["tag"] = {{one_of(outputs->second), new_name("o")}};
    if (chance(40))
      step["tag"]["output"] = new_name("t");
  }
  if (chance(8))
    step["name"] = new_name("n");
  if (chance(8))
    step["frozen"] = true;
  if (chance(8))
    step["enabled"] = false;
  return json::array({step});
}

RandomFlow::Scope RandomFlow::inner(const Scope& outer, TensorSpec stream) const {
  Scope scope;
  scope.inputs = {stream};
  scope.now = std::move(stream);
  scope.depth = outer.depth + 1;
  return scope;
}

RandomFlow::Scope RandomFlow::grown(Scope scope) {
  using Verb = json (RandomFlow::*)(const Scope&);
  constexpr std::array<Verb, 12> kVerbs{
      &RandomFlow::residual, &RandomFlow::split, &RandomFlow::mixture_of_experts,
      &RandomFlow::choice,   &RandomFlow::loop,  &RandomFlow::pieces,
      &RandomFlow::nested,   &RandomFlow::state, &RandomFlow::begun_state,
      &RandomFlow::cell,     &RandomFlow::back,  &RandomFlow::tied};
  const std::size_t wanted = 1 + below(scope.depth == 0 ? 6 : 3);
  for (std::size_t step = 0; step < wanted; ++step) {
    for (int attempt = 0; attempt < 12; ++attempt) {
      const bool is_verb = scope.depth < kMostDepth && chance(45);
      if (adds(scope, is_verb ? (this->*kVerbs[below(kVerbs.size())])(scope) : leaf(scope)))
        break;
    }
  }
  if (scope.steps.empty())
    adds(scope, {"identity"});
  return scope;
}

std::optional<json> RandomFlow::fitted(Scope scope, const TensorSpec& wanted) {
  scope = grown(std::move(scope));
  if (scope.now == wanted)
    return scope.steps;
  json ends = json::array();
  ends.push_back({{{"use", "dense"}, {"out_features", wanted.sizes.back()}}});
  ends.push_back({"flatten", {{"use", "dense"}, {"out_features", elements(wanted)}}});
  ends.push_back({"flatten",
                  {{"use", "dense"}, {"out_features", elements(wanted)}},
                  {{"use", "unflatten"}, {"shape", row_of(wanted)}}});
  for (const json& end : ends) {
    Scope tried = scope;
    if (adds(tried, end) && tried.now == wanted)
      return tried.steps;
  }
  return std::nullopt;
}

/// Branches that give the same sizes.
std::vector<json> RandomFlow::alike(const Scope& scope, std::size_t count) {
  const Scope first = grown(inner(scope, scope.now));
  std::vector<json> branches{first.steps};
  for (int attempt = 0; branches.size() < count && attempt < 6; ++attempt) {
    if (auto branch = fitted(inner(scope, scope.now), first.now))
      branches.push_back(std::move(*branch));
  }
  return branches;
}

json RandomFlow::router(const std::vector<std::string>& names, std::size_t count) {
  const std::string& name = one_of(names);
  if (name == "fixed_selector")
    return {{"use", name}, {"branch", below(count)}};
  if (name == "top_k_router") {
    json router = {{"use", name}, {"num_experts", count}, {"top_k", 1 + below(count)}};
    if (chance(50))
      router["capacity_factor"] = 0.5 + 0.25 * static_cast<double>(below(4));
    if (chance(30))
      router["softmax"] = one_of(std::vector<std::string>{"sparsemax", "entmax"});
    return router;
  }
  return {{"use", name}, {name == "argmax_selector" ? "num_branches" : "num_experts", count}};
}

json RandomFlow::residual(const Scope& scope) {
  const auto body = fitted(inner(scope, scope.now), scope.now);
  return body ? json::array({{{"use", chance(80) ? "residual" : "recompute"}, {"body", *body}}})
              : json::array();
}

json RandomFlow::split(const Scope& scope) {
  json split = {{"use", "split"}};
  if (chance(70)) {
    split["branches"] = alike(scope, 2 + below(2));
  } else {
    split["branches"] = {grown(inner(scope, scope.now)).steps,
                         grown(inner(scope, scope.now)).steps};
  }
  json merge = {{"use", "merge"},
                {"with", one_of(std::vector<std::string>{"add", "mean", "multiply", "cat"})}};
  if (split["branches"].size() == 2 && chance(20)) {
    merge["with"] = {
        {"use", "grid_cat"}, {"grid", {2, 1, 2}}, {"positions", {{1, 0, 0}, {0, 0, below(2)}}}};
  }
  if (chance(50))
    merge["tag"] = new_name("t");
  if (chance(20))
    return {split, {{"use", "tag_group"}, {"group", new_name("g")}}, merge};
  return {split, merge};
}

json RandomFlow::mixture_of_experts(const Scope& scope) {
  const auto experts = alike(scope, 2 + below(2));
  json step = {
      {"use", "mixture_of_experts"},
      {"router", router({"softmax_router", "sigmoid_router", "top_k_router"}, experts.size())},
      {"experts", experts}};
  if (const auto tag = known_tag(scope); tag && chance(30))
    step["using"] = {*tag};
  if (chance(30))
    step["sparse"] = true;
  return json::array({step});
}

/// Two dense layers of one weight.
json RandomFlow::tied(const Scope& scope) {
  const std::string name = new_name("n");
  const std::int64_t width = scope.now.sizes.back();
  return {{{"use", "dense"}, {"out_features", width}, {"name", name}},
          "tanh",
          {{"use", "dense"}, {"out_features", width}, {"tied_to", name}, {"bias", chance(50)}}};
}

json RandomFlow::choice(const Scope& scope) {
  const auto branches = alike(scope, 2 + below(2));
  json step = {{"use", "switch"},
               {"router", router({"argmax_selector", "fixed_selector"}, branches.size())},
               {"branches", branches}};
  // A selector counts every value before the last dimension as a row.
  const bool is_of_rows = scope.now.sizes.size() == 2;
  if (is_of_rows && step["router"]["use"] == "argmax_selector" && chance(50)) {
    step["by"] = "row";
    step["router"]["by"] = "row";
  }
  return json::array({step});
}

json RandomFlow::loop(const Scope& scope) {
  Scope within = inner(scope, scope.now);
  const auto port = known_tag(scope);
  const bool refers = port && chance(30);
  if (refers) {
    within.inputs.push_back(scope.tags.at(*port));
    within.steps = {{{"use", "input"}, {"names", {*port}}}, "identity"};
    within.tags = {{*port, scope.tags.at(*port)}};
  }
  const auto body = fitted(std::move(within), scope.now);
  if (!body)
    return json::array();
  json step = {{"use", "loop"}, {"body", *body}};
  if (refers)
    step["using"] = {*port};
  if (chance(30))
    step["tag"] = new_name("t");
  const std::string kind = one_of(std::vector<std::string>{"times", "while", "until", "adaptive"});
  if (kind == "times" || chance(40)) {
    step["times"] = 1 + below(3);
    return json::array({step});
  }
  step["at_most"] = 1 + below(3);
  step[kind] =
      chance(60) ? json("learned_halt") : json{{"use", "threshold_halt"}, {"threshold", 0.5}};
  if (kind != "adaptive") {
    step["halt_by"] = one_of(std::vector<std::string>{"any", "all", "first"});
  } else if (chance(50)) {
    step["adaptive"] = {{"use", "dense"}, {"out_features", 1}};
  }
  return json::array({step});
}

json RandomFlow::pieces(const Scope& scope) {
  json step = {{"use", "map"}, {"batched", chance(50)}};
  const std::int64_t width = scope.now.width();
  const auto over = known_tag(scope);
  TensorSpec piece = scope.now;
  if (over && chance(30)) {
    step["over"] = *over;
    piece = scope.tags.at(*over);
  } else if (width % 2 == 0 && chance(50)) {
    step["slices"] = 2;
    piece.sizes.back() = width / 2;
  }
  step["body"] = grown(inner(scope, piece)).steps;
  return json::array({step});
}

json RandomFlow::nested(const Scope& scope) {
  const Scope within = grown(inner(scope, scope.now));
  json step = {{"use", "flow"}, {"flow", within.steps}};
  const auto tag = known_tag(within);
  if (tag && chance(40)) {
    step["outputs"] = {*tag};
    if (const auto other = known_tag(within); other != tag && chance(60)) {
      step["outputs"].push_back(*other);
      step["tag"] = {{*other, new_name("o")}};
    }
  }
  if (chance(20))
    step["frozen"] = true;
  return json::array({step});
}

/// stream + what was at the tag in the forward before.
json RandomFlow::state(const Scope& scope) {
  const auto steps = fitted(inner(scope, scope.now), scope.now);
  if (!steps)
    return json::array();
  const std::string tag = new_name("s");
  return {{{"use", "state_add"}, {"using", {tag}}},
          {{"use", "flow"}, {"flow", *steps}, {"tag", tag}}};
}

json RandomFlow::begun_state(const Scope& scope) {
  const auto steps = fitted(inner(scope, scope.now), scope.now);
  if (!steps)
    return json::array();
  const std::string tag = new_name("s");
  const std::string with = one_of(std::vector<std::string>{"multiply", "add", "mean"});
  return json::array(
      {{{"use", "flow"},
        {"flow",
         {{{"use", with}, {"using", {tag}}}, {{"use", "flow"}, {"flow", *steps}, {"tag", tag}}}},
        {"initial", {{{"state", tag}, {"shape", row_of(scope.now)}, {"fill", 0.5}}}}}});
}

json RandomFlow::cell(const Scope&) {
  const std::string tag = new_name("s");
  return json::array(
      {{{"use", one_of(std::vector<std::string>{"rnn_cell", "gru_cell", "lstm_cell"})},
        {"hidden_size", 1 + below(7)},
        {"using", {tag}},
        {"tag", tag}}});
}

/// Goes on from what was before.
json RandomFlow::back(const Scope& scope) {
  const auto first = known_tag(scope);
  const auto second = known_tag(scope);
  if (!first)
    return json::array();
  if (*first == *second)
    return json::array({{{"use", "at"}, {"tags", {*first}}}});
  return {{{"use", "at"}, {"tags", {*first, *second}}},
          {{"use", "merge"}, {"with", one_of(std::vector<std::string>{"add", "multiply", "cat"})}}};
}

}  // namespace treadle::testing
