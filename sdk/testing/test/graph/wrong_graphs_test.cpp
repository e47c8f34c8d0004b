#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/core/model/layer.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/flow_document.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/graph/graph_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_graphs {
namespace {

using Json = nlohmann::json;
using After = std::function<at::Tensor(const at::Tensor&)>;

/// A linear map, and what `after` makes of it.
class Plain final : public Layer {
 public:
  Plain(const LayerSpec& spec, std::int64_t units, After after) : after_(std::move(after)) {
    weight_ =
        register_parameter("weight", at::randn({units, spec.inputs[0].width()}, spec.dtype).div(4));
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    const at::Tensor result = at::linear(inputs[0], weight_);
    return after_ ? after_(result) : result;
  }

 private:
  at::Tensor weight_;
  After after_;
};

/// Makes layers of so many "units", and `prepare`s them.
class PlainFactory final : public LayerFactory {
 public:
  using Prepare = std::function<void(Layer&, const LayerSpec&)>;
  PlainFactory(const Config& config, After after, Prepare prepare)
      : units_(config.get<std::int64_t>("units")),
        after_(std::move(after)),
        prepare_(std::move(prepare)) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    auto layer = std::make_shared<Plain>(spec, units_, after_);
    if (prepare_)
      prepare_(*layer, spec);
    return layer;
  }

  std::int64_t units_;
  After after_;
  Prepare prepare_;
};

/// Plain; asked for gradients through one step of time it takes its input as a number, but not in a
/// plan.
class CutWhereCalled final : public Layer, public Lowerable {
 public:
  CutWhereCalled(const LayerSpec& spec, std::int64_t units) {
    weight_ =
        register_parameter("weight", at::randn({units, spec.inputs[0].width()}, spec.dtype).div(4));
  }
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    const at::Tensor weight = context.truncates_bptt() ? weight_.detach() : weight_;
    return at::linear(inputs[0], weight.add(weight_).div(2));
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_linear(weight_, {}), inputs[0]);
  }

 private:
  at::Tensor weight_;
};

class CutWhereCalledFactory final : public LayerFactory {
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<CutWhereCalled>(spec, 5);
  }
};

/// A step whose part has no name that a document could say.
class Nameless final : public LayerFactory, public graph::FlowVerb {
 public:
  void add_to(graph::FlowBuilder& flow) const override {
    flow.through([](const at::Tensor& x) { return x.tanh(); });
  }

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec&) const override { return nullptr; }
  void* do_ask(std::string_view id) override {
    return id == FlowVerb::kInterface ? static_cast<FlowVerb*>(this) : nullptr;
  }
};

std::unique_ptr<const PluginRegistry> make_components() {
  auto registry = std::make_unique<PluginRegistry>();
  const auto add = [&](const char* name, After after, PlainFactory::Prepare prepare = nullptr) {
    registry->add<LayerFactory>(name, [=](const Config& config, const ComponentContext&) {
      return std::make_unique<PlainFactory>(config, after, prepare);
    });
  };
  add("dense", nullptr);
  add("dense_tanh", [](const at::Tensor& x) { return x.tanh(); });
  add("half_differentiated", [](const at::Tensor& x) { return x.add(x.detach()).div(2); });
  add("mute", [](const at::Tensor& x) { return x.mul(0); });
  add("with_more_than_it_uses", nullptr, [](Layer& layer, const LayerSpec& spec) {
    layer.register_parameter("unused", at::randn({2}, spec.dtype));
  });
  add("drawn_elsewhere", nullptr, [](Layer& layer, const LayerSpec&) {
    static std::uint64_t count = 0;
    const TaskRandom random(++count);
    const at::NoGradGuard no_gradients;
    layer.parameters()[0].add_(at::randn({1}, at::kDouble));
  });
  add("of_another_dtype", [](const at::Tensor& x) { return x.to(at::kDouble); });
  registry->add<LayerFactory>("cut_where_called", [](const Config&, const ComponentContext&) {
    return std::make_unique<CutWhereCalledFactory>();
  });
  registry->add<LayerFactory>("nameless", [](const Config&, const ComponentContext&) {
    return std::make_unique<Nameless>();
  });
  return registry;
}

const PluginRegistry& components() {
  static const std::unique_ptr<const PluginRegistry> registry = make_components();
  return *registry;
}

Json layer(const std::string& name, std::int64_t units) {
  return {{"use", name}, {"units", units}};
}

/// Two layers. `change` sees the steps for a spec.
class TwoLayers final : public GraphBuilder {
 public:
  using Change = std::function<void(Json& steps, const LayerSpec& spec)>;
  explicit TwoLayers(Change change) : change_(std::move(change)) {}

 private:
  Json do_build(const LayerSpec& spec) const override {
    Json steps = Json::array({layer("dense_tanh", 5), layer("dense", spec.outputs[0].width())});
    if (change_)
      change_(steps, spec);
    return steps;
  }
  Change change_;
};

GraphCase two_layers(std::string name, const std::function<TwoLayers::Change()>& change = nullptr) {
  GraphCase one;
  one.name = std::move(name);
  one.make = [change] { return std::make_unique<TwoLayers>(change ? change() : nullptr); };
  one.components = [] { return std::cref(components()); };
  return one;
}

/// The same change for every builder.
GraphCase changed(std::string name, const TwoLayers::Change& change) {
  return two_layers(std::move(name), [change] { return change; });
}

/// Another first layer.
GraphCase with(std::string name, const std::string& first) {
  return changed(std::move(name),
                 [first](Json& steps, const LayerSpec&) { steps[0] = layer(first, 5); });
}

std::vector<Wrong<GraphCase>> all() {
  return {
      {two_layers("RemembersTheLastNetwork",
                  [] {
                    return [last = std::make_shared<std::int64_t>(5)](Json& steps,
                                                                      const LayerSpec& spec) {
                      steps[0]["units"] = *last;
                      if (spec.outputs[0].width() == 4)
                        *last = 6;
                    };
                  }),
       {"SaysTheSameStepsEveryTime"}},
      {changed("LooksAtTheDtype",
               [](Json& steps, const LayerSpec& spec) {
                 steps[0]["units"] = spec.dtype == at::kFloat ? 5 : 6;
               }),
       {"SaysTheSameStepsForEveryDtype"}},
      {changed("SaysBytes",
               [](Json& steps, const LayerSpec&) {
                 steps[0]["note"] = Json::binary({1, 2});
               }),
       {"SaysWhatADocumentCanSay"}},
      {changed("GivesAnotherWidth",
               [](Json& steps, const LayerSpec& spec) {
                 steps[1]["units"] = spec.outputs[0].width() + 1;
               }),
       {"BuildsANetworkForWhatItIsAsked", "FollowsTheLoss"}},
      {changed("GivesOneWidthAlways", [](Json& steps, const LayerSpec&) { steps[1]["units"] = 3; }),
       {"FollowsTheLoss"}},
      {changed("GivesAnotherDtype",
               [](Json& steps, const LayerSpec& spec) {
                 steps[1] = layer("of_another_dtype", spec.outputs[0].width());
               }),
       {"BuildsANetworkForWhatItIsAsked"}},
      {with("DrawsFromElsewhere", "drawn_elsewhere"),
       {"NetworksHaveOneStructureAndTheTasksRandomStream", "NetworksAreAPartOfOthers"}},
      {changed("HasAPartWithoutAName",
               [](Json& steps, const LayerSpec&) {
                 steps.insert(steps.begin(), Json{{"use", "nameless"}});
               }),
       {"NetworksCanBeWrittenDown"}},
      {with("HalvesAGradient", "half_differentiated"), {"GradientsAreTheSlopesOfTheResult"}},
      {with("HasAnUnusedParameter", "with_more_than_it_uses"), {"EveryParameterGetsAGradient"}},
      {with("CutsNothingInAPlan", "cut_where_called"), {"TruncatedBpttAreTheSameOnEveryWay"}},
      {with("CannotLearn", "mute"), {"NetworksLearn"}},
      {two_layers("SharesItsScratch",
                  [] {
                    return [thread = OneThread()](Json& steps, const LayerSpec&) {
                      if (!thread.is_mine())
                        steps[0]["units"] = 6;
                    };
                  }),
       {"SeveralThreadsMayBuildAtOnce"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, GraphContract, ::testing::Values(two_layers("TwoLayers")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, GraphContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_graphs

std::vector<Defect> graph_defects() {
  return defects_of("GraphContract", wrong_graphs::all());
}

}  // namespace treadle::testing
