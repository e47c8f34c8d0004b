// A flow as the model of a data set: its ports, its outputs, their shapes.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/graph/flow_model.h>
#include <treadle/tensor/task_random.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ModelSpec model_spec(std::vector<PortSpec> inputs, std::vector<OutputSpec> outputs) {
  ModelSpec spec;
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  spec.dtype = at::kDouble;
  return spec;
}

Part to_width(std::int64_t in, std::int64_t out) {
  torch::nn::Linear made(in, out);
  made->to(at::kDouble);
  return made;
}

std::vector<at::Tensor> run(Model& model, const std::vector<at::Tensor>& inputs,
                            std::size_t outputs) {
  Outputs given(outputs);
  ForwardContext context;
  model.forward(inputs, given, context);
  return given;
}

std::string refusal(const FlowBuilder& flow, const ModelSpec& spec) {
  try {
    build_model(flow, spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::vector<OutputSpec> kSpeciesAndPrice{{"species", {3}}, {"price", {1}}};

/// The stream doubled, from which two heads go.
FlowBuilder two_heads(const std::string& first, const std::string& second) {
  FlowBuilder flow = FlowBuilder::from(times(2)).tag("encoded");
  flow.through(to_width(4, 1)).tag(second).at({"encoded"}).through(to_width(4, 3)).tag(first);
  return flow;
}

TEST(FlowModel, OutputsAreTagsWithTheirNames) {
  const ModelSpec spec = model_spec({{"features", {4}}}, kSpeciesAndPrice);
  const auto model = build_model(two_heads("species", "price"), spec);

  const auto outputs = run(*model, {at::randn({5, 4}, at::kDouble)}, 2);

  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].sizes(), (std::vector<std::int64_t>{5, 3}));
  EXPECT_EQ(outputs[1].sizes(), (std::vector<std::int64_t>{5, 1}));
}

TEST(FlowModel, OutputsAreNamedInAnyOrder) {
  const ModelSpec spec = model_spec({{"features", {4}}}, kSpeciesAndPrice);
  const FlowBuilder heads = two_heads("a", "b");
  const at::Tensor input = at::randn({5, 4}, at::kDouble);
  FlowBuilder named = heads;
  named.outputs({"price", "species"}, {"b", "a"});
  FlowBuilder positional = heads;
  positional.outputs({"a", "b"});

  const auto outputs = run(*build_model(named, spec), {input}, 2);
  const auto same = run(*build_model(positional, spec), {input}, 2);

  EXPECT_EQ(outputs[0].size(1), 3);
  EXPECT_TRUE(at::equal(outputs[0], same[0]));
  EXPECT_TRUE(at::equal(outputs[1], same[1]));
}

TEST(FlowModel, OneEndIsCutWherePositionsAreTheSame) {
  const ModelSpec spec = model_spec({{"steps", {5, 4}}}, {{"mean", {5, 2}}, {"variance", {5, 1}}});
  const auto model = build_model(FlowBuilder::from(to_width(4, 3)), spec);

  const auto outputs = run(*model, {at::randn({2, 5, 4}, at::kDouble)}, 2);

  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].sizes(), (std::vector<std::int64_t>{2, 5, 2}));
  EXPECT_EQ(outputs[1].sizes(), (std::vector<std::int64_t>{2, 5, 1}));
}

TEST(FlowModel, MistakesInOutputsListOutputsShapesAndTags) {
  const ModelSpec spec = model_spec({{"features", {4}}}, kSpeciesAndPrice);
  FlowBuilder flow = two_heads("a", "b");
  flow.outputs({"price", "specie"}, {"b", "a"});
  EXPECT_THAT(refusal(flow, spec),
              AllOf(HasSubstr("\"specie\""), HasSubstr("\"species\" [B, 3] and \"price\" [B, 1]"),
                    HasSubstr("did you mean \"species\"")));
  flow.outputs(std::vector<std::string>{"price"}, {"b"});
  EXPECT_THAT(refusal(flow, spec), HasSubstr("no tag for \"species\""));
  flow.outputs({"price", "species"}, {"a", "b"});
  EXPECT_THAT(refusal(flow, spec), AllOf(HasSubstr("[B, 1] from"), HasSubstr("requires [B, 3]"),
                                         HasSubstr("\"species\"")));
  flow.outputs({"a", "b", "encoded"});
  EXPECT_THAT(refusal(flow, spec), AllOf(HasSubstr("3 outputs"), HasSubstr("2: \"species\" [B, 3]"),
                                         HasSubstr("\"a\", \"b\", \"encoded\"")));
  const ModelSpec pixels = model_spec({{"features", {4}}}, {{"class", {3}}, {"mask", {2, 2, 5}}});
  EXPECT_THAT(
      refusal(two_heads("a", "b"), pixels),
      AllOf(HasSubstr("one end, [B, 3]"), HasSubstr("\"class\" [B, 3] and \"mask\" [B, 2, 2, 5]"),
            HasSubstr("\"outputs\""), HasSubstr("\"a\", \"b\", \"encoded\"")));
}

TEST(FlowModel, PositionsMayVary) {
  const ModelSpec spec =
      model_spec({{"text", {kVaries}, {}, Role::kTokens, at::kLong, 7},
                  {"text.lengths", {}, {}, Role::kLengths, at::kLong, 0, "text"}},
                 {{"next", {kVaries, 7}}});
  torch::nn::Embedding table(7, 4);
  table->to(at::kDouble);
  const auto model = build_model(FlowBuilder::from(table).through(to_width(4, 7)), spec);
  for (const std::int64_t length : {3, 6}) {
    const auto outputs =
        run(*model, {at::arange(2 * length).remainder(7).view({2, length}), at::arange(1, 3)}, 1);
    EXPECT_EQ(outputs[0].sizes(), (std::vector<std::int64_t>{2, length, 7}));
  }
  EXPECT_THAT(refusal(FlowBuilder::from(table).through(to_width(4, 6)), spec),
              HasSubstr("[B, ?, 7]"));
}

/// stream + a reference, which may be lengths.
class AddsLengths final : public Layer, public TakesIndices {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].add(inputs[1].to(inputs[0].scalar_type()).unsqueeze(1));
  }
  bool takes_indices(std::size_t index) const override { return index == 1; }
};

TEST(FlowModel, LengthsAreNoStreamAndArriveWhereTheyAreNamed) {
  const PortSpec lengths{"signal.lengths", {}, {}, Role::kLengths, at::kLong, 0, "signal"};
  // In front of the data they describe, and behind it.
  for (const bool is_first : {true, false}) {
    const PortSpec signal{"signal", {4}};
    const ModelSpec spec = model_spec(
        is_first ? std::vector{lengths, signal} : std::vector{signal, lengths}, {{"y", {4}}});
    const at::Tensor x = at::randn({2, 4}, at::kDouble);
    const at::Tensor numbers = at::arange(1, 3);
    const std::vector<at::Tensor> inputs =
        is_first ? std::vector{numbers, x} : std::vector{x, numbers};

    const auto without = build_model(FlowBuilder::from(times(1)), spec);
    EXPECT_TRUE(at::equal(run(*without, inputs, 1)[0], x));

    FlowBuilder named;
    named.through(std::make_shared<AddsLengths>()).using_({"signal.lengths"});
    FlowBuilder by_step;
    by_step.input({"signal.lengths"}).through(std::make_shared<AddsLengths>());
    by_step.using_({"signal.lengths"});
    for (const FlowBuilder& flow : {named, by_step}) {
      const auto with = build_model(flow, spec);
      EXPECT_TRUE(at::equal(run(*with, inputs, 1)[0], x.add(numbers.unsqueeze(1))));
    }
  }
}

/// Computes with numbers, and does not say that it takes anything else.
class Doubles final : public Layer {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0].mul(2); }
};

TEST(FlowModel, LayersThatComputeRefuseIndices) {
  const auto flow = [] { return FlowBuilder::from(std::make_shared<Doubles>()).named("doubled"); };
  const PortSpec categories{
      "town", {2}, {{"a", {"x", "y"}}, {"b", {"u"}}}, Role::kCategories, at::kLong};
  EXPECT_THAT(refusal(flow(), model_spec({categories}, {{"y", {2}}})),
              AllOf(HasSubstr("\"doubled\""), HasSubstr("[B, 2] int64 from \"input\""),
                    HasSubstr("embedding"), HasSubstr("one_hot")));
  PortSpec image{"image", {2}, {}, Role::kImage, at::kByte};
  EXPECT_THAT(refusal(flow(), model_spec({image}, {{"y", {2}}})),
              AllOf(HasSubstr("uint8"), Not(HasSubstr("one_hot"))));
  EXPECT_EQ(refusal(flow(), model_spec({{"x", {2}}}, {{"y", {2}}})), "");
  // What only moves elements takes them; within a body they are refused as well.
  FlowBuilder loop;
  loop.through(identity())
      .loop(FlowBuilder::from(identity()).through(std::make_shared<Doubles>()))
      .times(2);
  EXPECT_THAT(refusal(loop, model_spec({categories}, {{"y", {2}}})),
              AllOf(HasSubstr("in \"loop_0\""), HasSubstr("embedding")));
}

class LooksUp final : public Layer, public TakesIndices {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].to(at::kDouble).unsqueeze(-1).expand({-1, -1, 4});
  }
};

TEST(FlowModel, LayersKnowTheVocabularyOfTheirInput) {
  std::vector<std::int64_t> seen;
  const Part asks("asks", [&](const LayerSpec& spec) {
    seen = spec.inputs[0].vocabulary;
    return std::make_shared<LooksUp>();
  });
  build_model(FlowBuilder::from(asks),
              model_spec({{"text", {5}, {}, Role::kTokens, at::kLong, 9}}, {{"y", {5, 4}}}));
  EXPECT_THAT(seen, ElementsAre(9));
  build_model(
      FlowBuilder::from(asks),
      model_spec({{"town", {2}, {{"a", {"x", "y"}}, {"b", {"u"}}}, Role::kCategories, at::kLong}},
                 {{"y", {2, 4}}}));
  EXPECT_THAT(seen, ElementsAre(2, 1));
}

// [B, 4] + [B, 1] is more often a mistake than a wish.
TEST(Adding, RefusesUnequalSizesUnlessTheStepBroadcasts) {
  const auto flow = [](const Part& merge) {
    return FlowBuilder::from(times(1)).split({times(2), to_width(4, 1)}).merge(merge);
  };
  const LayerSpec rows = spec_of({{4}});
  for (const auto& [strict, broadcasting] :
       {std::pair(add(), add(true)), std::pair(mean(), mean(true))}) {
    EXPECT_THAT(mistakes(flow(strict), rows),
                AllOf(HasSubstr("[B, 4]"), HasSubstr("[B, 1]"), HasSubstr("\"broadcast\": true")));
    EXPECT_EQ(mistakes(flow(broadcasting), rows), "");
  }
  EXPECT_THAT(mistakes(FlowBuilder().residual(to_width(4, 1)), rows),
              HasSubstr("\"broadcast\": true"));
  EXPECT_EQ(mistakes(FlowBuilder().residual(to_width(4, 1), /*broadcast=*/true), rows), "");
  EXPECT_EQ(mistakes(flow(multiply(true)), rows), "");
}

}  // namespace
}  // namespace treadle::graph
