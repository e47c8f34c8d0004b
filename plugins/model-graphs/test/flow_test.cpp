// What a document says is what FlowBuilder says, and mistakes name their place.
#include <gmock/gmock.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/problem.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/flow_model.h>
#include <treadle/graph/ready_parts.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::model_graphs {
namespace {

using graph::FlowBuilder;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const testing::PluginUnderTest& plugin() {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

ModelSpec spec(std::int64_t width = 3) {
  ModelSpec spec;
  spec.inputs = {{"features",
                  {4},
                  {{"x0", {}, false}, {"x1", {}, false}, {"x2", {}, false}, {"x3", {}, false}}}};
  spec.outputs = {{"output", {width}}};
  spec.dtype = at::kDouble;
  return spec;
}

std::shared_ptr<Model> from_document(const std::string& text, const ModelSpec& wanted = spec()) {
  const TaskRandom random(5);
  return plugin().make<ModelProvider>("flow", json::parse(text))->create(wanted);
}

at::Tensor output_of(Model& model) {
  const TaskRandom random(6);
  Outputs outputs(1);
  ForwardContext context;
  const std::vector<at::Tensor> inputs{at::randn({8, 4}, at::kDouble)};
  model.forward(inputs, outputs, context);
  return outputs[0];
}

std::string message_of(const std::string& text, const ModelSpec& wanted = spec()) {
  try {
    from_document(text, wanted);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Flow, SaysInADocumentWhatItSaysInCpp) {
  const std::string text = R"({"flow": [
    {"use": "sigmoid_router", "num_experts": 4, "tag": "encoded"},
    {"use": "residual", "body": [{"use": "softmax_router", "num_experts": 4}]},
    {"use": "split", "branches": [[{"use": "sigmoid_router", "num_experts": 2}], [{"use": "softmax_router", "num_experts": 4}, "identity"]]},
    {"use": "tag_group", "group": "heads"},
    {"use": "merge", "with": {"use": "cat", "dim": 1}, "name": "joined"},
    {"use": "map", "body": ["identity"], "slices": 2, "batched": true},
    {"use": "softmax_router", "num_experts": 4},
    {"use": "loop", "body": [{"use": "sigmoid_router", "num_experts": 4}], "times": 3},
    {"use": "loop", "body": [{"use": "sigmoid_router", "num_experts": 4}], "until": {"use": "threshold_halt", "threshold": 0.5}, "at_most": 4},
    {"use": "mixture_of_experts", "router": {"use": "softmax_router", "num_experts": 2}, "experts": [["identity"], [{"use": "sigmoid_router", "num_experts": 4}]], "using": ["encoded"]},
    {"use": "switch", "router": {"use": "argmax_selector", "num_branches": 2, "by": "row"}, "branches": [["identity"], [{"use": "softmax_router", "num_experts": 4}]], "by": "row"},
    {"use": "at", "tags": ["encoded", "heads_1"]},
    {"use": "merge", "with": "add"},
    {"use": "sigmoid_router", "num_experts": 3, "name": "last", "frozen": true}
  ]})";
  const FlowBuilder said =
      FlowBuilder::from(graph::sigmoid_router(4, 4))
          .tag("encoded")
          .residual(graph::softmax_router(4, 4))
          .split({graph::sigmoid_router(4, 2),
                  FlowBuilder::from(graph::softmax_router(4, 4)).through(graph::identity())})
          .tag_group("heads")
          .merge(graph::cat(1))
          .named("joined")
          .map(graph::identity())
          .batched()
          .slices(2)
          .through(graph::softmax_router(6, 4))
          .loop(graph::sigmoid_router(4, 4))
          .times(3)
          .loop(graph::sigmoid_router(4, 4))
          .until(graph::threshold_halt(0.5), 4)
          .mixture_of_experts(graph::softmax_router(4, 2),
                              {graph::identity(), graph::sigmoid_router(4, 4)})
          .using_({"encoded"})
          .switch_(graph::argmax_selector(4, 2, true),
                   {graph::identity(), graph::softmax_router(4, 4)}, graph::SwitchBy::kRow)
          .at({"encoded", "heads_1"})
          .merge(graph::add())
          .through(graph::sigmoid_router(4, 3))
          .named("last")
          .frozen();
  std::shared_ptr<graph::Graph> in_cpp;
  {
    const TaskRandom random(5);
    in_cpp = graph::build_model(said, spec());
  }

  const auto in_document = std::dynamic_pointer_cast<graph::Graph>(from_document(text));

  ASSERT_NE(in_document, nullptr);
  EXPECT_EQ(in_document->named_parameters().keys(), in_cpp->named_parameters().keys());
  ASSERT_EQ(in_document->nodes().size(), in_cpp->nodes().size());
  for (std::size_t i = 0; i < in_cpp->nodes().size(); ++i)
    EXPECT_EQ(in_document->nodes()[i].id, in_cpp->nodes()[i].id);
  EXPECT_TRUE(at::equal(output_of(*in_document), output_of(*in_cpp)));
  EXPECT_FALSE(in_document->named_parameters()["last.weight"].requires_grad());
}

TEST(Flow, WritesItselfBack) {
  const std::string text = R"({"flow": [
    {"use": "sigmoid_router", "num_experts": 4, "tag": "encoded"},
    {"use": "residual", "body": [{"use": "softmax_router", "num_experts": 4}]},
    {"use": "residual", "body": [{"use": "softmax_router", "num_experts": 1}], "broadcast": true},
    {"use": "split", "branches": [[{"use": "identity"}], [{"use": "identity"}, {"use": "identity"}]]},
    {"use": "tag_group", "group": "heads"},
    {"use": "merge", "with": {"use": "add", "broadcast": true}, "name": "joined"},
    {"use": "loop", "body": [{"use": "identity"}], "until": {"use": "threshold_halt", "threshold": 0.5}, "at_most": 4, "halt_by": "any"},
    {"use": "loop", "body": [{"use": "identity"}], "adaptive": {"use": "learned_halt"}, "at_most": 4, "epsilon": 0.05, "ponder_cost": 0.5},
    {"use": "switch", "router": {"use": "fixed_selector", "branch": 0}, "branches": [[{"use": "identity"}], [{"use": "identity"}]], "by": "batch"},
    {"use": "map", "body": [{"use": "identity"}], "over": "encoded"},
    {"use": "flow", "flow": [{"use": "add", "broadcast": false, "using": ["s"]}, {"use": "identity", "tag": "s"}, {"use": "identity"}],
     "outputs": ["s"], "initial": [{"state": "s", "shape": [4], "fill": 0.5}]},
    {"use": "flow", "flow": [{"use": "identity", "tag": "early"}, {"use": "identity", "tag": "late"}],
     "outputs": ["late", "early"], "tag": {"output": "whole", "early": "taken"}},
    {"use": "at", "tags": ["encoded"]},
    {"use": "sigmoid_router", "num_experts": 3, "frozen": true, "using": ["encoded"], "tag": "state"}
  ], "outputs": {"output": "state"}, "initial": [{"state": "state", "shape": [3], "fill": 0.0}]})";
  const json document = json::parse(text);
  class Registry final : public ComponentLoader {
   public:
    std::vector<std::string> names(std::string_view) const override { return {}; }
    ComponentEntry find(std::string_view id, std::string_view name) const override {
      return {std::string(id), std::string(name), "", "", "", plugin().schema(name)};
    }
    ComponentFactory load(const ComponentEntry& entry) override {
      return [name = entry.name](const Config& config,
                                 const ComponentContext& context) -> std::unique_ptr<Component> {
        return plugin().make<LayerFactory>(name, config.json(), context);
      };
    }
  };
  const PluginRegistry registry(std::make_shared<Registry>());
  const Config config(document);

  const json written = graph::write_flow(graph::read_whole_flow(config, registry));

  EXPECT_EQ(written, document) << written.dump(1);
}

// A document's body is an array, which has no place for initial values.
TEST(Flow, WritesABodyWithInitialValuesAsOneStep) {
  const auto part = [](const char* name) {
    return graph::layer(plugin().make<LayerFactory>(name), name, json::object());
  };
  FlowBuilder body;
  body.input({"first"}).through(part("add")).using_({"first", "s"}).tag("s").initial("s", {4}, 0.5);
  FlowBuilder flow = FlowBuilder::from(part("identity")).tag("first");
  flow.loop(body).times(2).using_({"first"});

  const json written = graph::write_flow(flow)["flow"].back();

  EXPECT_EQ(written, json::parse(R"({"use": "loop", "times": 2, "using": ["first"], "body": [
    {"use": "input", "names": ["first"]},
    {"use": "flow", "using": ["first"], "initial": [{"state": "s", "shape": [4], "fill": 0.5}],
     "flow": [{"use": "input", "names": ["first"]}, {"use": "add", "using": ["first", "s"], "tag": "s"}]}
  ]})"))
      << written.dump(1);
}

TEST(Flow, AModuleFromCppHasNoName) {
  const FlowBuilder flow = FlowBuilder::from([](const at::Tensor& x) { return x.relu(); });
  EXPECT_THROW(graph::write_flow(flow), UsageError);
}

TEST(Flow, MistakesNameTheirPlace) {
  EXPECT_EQ(
      message_of(
          R"({"flow": [{"use": "sigmoid_router", "num_experts": 4, "tag": "a"}, {"use": "sigmoid_router", "num_experts": 3, "tag": "a"}]})"),
      "/flow/1: the tag \"a\" is used twice");
  EXPECT_EQ(
      message_of(
          R"({"flow": [{"use": "residual", "body": [{"use": "sigmoid_router", "num_experts": 4, "tag": "a"},
                                                              {"use": "sigmoid_router", "num_experts": 4, "using": ["b"]}]}]})"),
      "/flow/0/body/1: in \"flow_0\": uses \"b\", but nothing is tagged so");
  EXPECT_EQ(message_of(R"({"flow": [{"use": "loop", "body": ["identity"]}]})"),
            "/flow/0: expected one of \"times\", \"while\", \"until\" and \"adaptive\", got 0 of "
            "them");
  EXPECT_EQ(
      message_of(R"({"flow": [{"use": "loop", "body": ["identity"], "until": "threshold_halt"}]})"),
      "/flow/0: required key \"at_most\" is missing (the most rounds that \"while\", \"until\" and "
      "\"adaptive\" may take)");
  EXPECT_EQ(
      message_of(
          R"({"flow": [{"use": "loop", "body": ["identity"], "times": 2, "ponder_cost": 0.1}]})"),
      "/flow/0/ponder_cost: applies only to \"adaptive\" loops, where each row halts by itself");
  EXPECT_EQ(
      message_of(
          R"({"flow": [{"use": "loop", "body": ["identity"], "times": 2, "halt_by": "any"}]})"),
      "/flow/0/halt_by: applies only to \"while\" and \"until\", which have a condition");
  EXPECT_EQ(
      message_of(
          R"({"flow": ["identity", {"use": "split", "branches": [["identity"], ["identity"]]}]})"),
      "/flow: 2 streams are open at the end of the flow; merge them");
  EXPECT_EQ(
      message_of(
          R"({"flow": [{"use": "identity", "tag": "inner"}], "outputs": {"output": "iner"}})"),
      "/flow: the outputs name \"iner\", but nothing is tagged so; did you mean \"inner\"?");
  EXPECT_EQ(
      message_of(
          R"({"flow": [{"use": "switch", "router": {"use": "argmax_selector", "num_branches": 2, "by": "row"}, "branches": [["identity"], ["identity"]]}]})"),
      "/flow/0: \"switch_0\": the switch goes by batch, but its router \"argmax_selector\" chooses "
      "for "
      "each row; set both to the same");
}

TEST(Flow, SaysLoopsWhoseRowsHaltByThemselves) {
  const std::string text = R"({"flow": [
    {"use": "sigmoid_router", "num_experts": 3},
    {"use": "loop", "body": [{"use": "sigmoid_router", "num_experts": 3}], "adaptive": "learned_halt", "at_most": 7,
     "ponder_cost": 0.25, "epsilon": 0.125}
  ]})";
  const FlowBuilder said =
      FlowBuilder::from(graph::sigmoid_router(4, 3))
          .loop(graph::sigmoid_router(3, 3))
          .adaptively(graph::learned_halt(3), 7, {.epsilon = 0.125, .cost = 0.25});

  const auto from_text = from_document(text);
  const TaskRandom random(5);
  const auto from_code = graph::build_model(said, spec());

  output_of(*from_text).square().sum().backward();
  output_of(*from_code).square().sum().backward();
  const auto ours = from_text->named_parameters();
  const auto theirs = from_code->named_parameters();
  ASSERT_EQ(ours.keys(), theirs.keys());
  EXPECT_EQ(ours.keys().back(), "loop_0.halt.bias");
  for (const auto& parameter : theirs)
    EXPECT_TRUE(at::equal(ours[parameter.key()].grad(), parameter.value().grad()))
        << parameter.key();
}

TEST(Flow, EndsWithWhatTheLossRequires) {
  EXPECT_EQ(message_of(R"({"flow": [{"use": "sigmoid_router", "num_experts": 5}]})"),
            "the flow ends with [B, 5] from \"sigmoid_router_0\", but the loss requires [B, 3]; "
            "end it with {\"use\": \"head\"}");
  EXPECT_EQ(
      message_of(
          R"({"flow": [{"use": "sigmoid_router", "num_experts": 3, "tag": "a"}], "outputs": {"outptu": "a"}})"),
      "\"outputs\" names \"outptu\", but the loss requires \"output\" [B, 3]; did you mean "
      "\"output\"?");
  EXPECT_EQ(
      message_of(R"({"flow": [{"use": "reshape", "shape": [-1, 2, 2]}]})"),
      "the flow ends with [B, 2, 2] from \"reshape_0\", but the loss requires [B, 3]; make rows of "
      "it in front of the head: {\"use\": \"flatten\"}, {\"use\": \"reduce\"} or "
      "{\"use\": \"select\"}");
}

TEST(Flow, NamesThePortsOfTheData) {
  ModelSpec two = spec();
  two.inputs.push_back({"mask", {4}, {}});
  const std::string uses_it =
      R"({"flow": [{"use": "input", "names": ["mask"]}, {"use": "sigmoid_router", "num_experts": 3, "using": ["mask"]}]})";
  EXPECT_EQ(message_of(uses_it, two), "");
  EXPECT_EQ(message_of(uses_it),
            "the model has an input \"mask\", but the data has only \"features\"");
  EXPECT_EQ(message_of(R"({"flow": [{"use": "sigmoid_router", "num_experts": 3}]})", two),
            "the data has the ports \"features\", \"mask\"; name all but one of them in an input "
            "step of the flow");

  // The stream begins with the port that is left, wherever it stands.
  const auto model = from_document(
      R"({"flow": [{"use": "input", "names": ["features"]}, {"use": "sigmoid_router", "num_experts": 3}]})",
      two);
  Outputs outputs(1);
  ForwardContext context;
  const at::Tensor first = at::randn({2, 4}, at::kDouble);
  const at::Tensor second = at::randn({2, 4}, at::kDouble);
  model->forward(std::vector<at::Tensor>{first, second}, outputs, context);
  const at::Tensor of_second = outputs[0];
  model->forward(std::vector<at::Tensor>{second, second}, outputs, context);
  EXPECT_TRUE(at::equal(outputs[0], of_second));
}

TEST(Flow, RefusesCategoriesThatWouldBeNumbers) {
  ModelSpec categories = spec();
  categories.inputs = {
      {"town", {2}, {{"a", {"x", "y"}}, {"b", {"u", "v"}}}, Role::kCategories, at::kLong}};
  EXPECT_THAT(message_of(R"({"flow": [{"use": "multiply"}]})", categories),
              AllOf(HasSubstr("\"multiply_0\""), HasSubstr("embedding"), HasSubstr("one_hot")));
}

TEST(Flow, StatesBeginAsTheDocumentSays) {
  const auto model = from_document(R"({
    "flow": [{"use": "add", "using": ["sum"], "tag": "sum"}, {"use": "at", "tags": ["sum"]}, {"use": "sigmoid_router", "num_experts": 3}],
    "initial": [{"state": "sum", "shape": [4], "fill": 2}]})");
  Outputs outputs(1);
  ForwardContext context;
  const at::Tensor zeros = at::zeros({2, 4}, at::kDouble);
  model->forward(std::vector<at::Tensor>{zeros}, outputs, context);

  EXPECT_EQ(context.state().part("states").tensor("sum").min().item<double>(), 2);
}

TEST(Flow, MissingStatesSaySo) {
  EXPECT_THAT(
      message_of(
          R"({"flow": [{"use": "add", "using": ["sum"], "tag": "sum"}, {"use": "sigmoid_router", "num_experts": 3}]})"),
      HasSubstr("uses the state \"sum\", which is absent in the first forward"));
}

}  // namespace
}  // namespace treadle::model_graphs
