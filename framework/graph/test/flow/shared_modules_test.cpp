// Modules that several nodes share, within graphs within graphs: however the graph runs, their
// gradients are added up in one order (docs/decisions/0012).
// TREADLE_SHARING_FLOWS=3000 tries that many instead of the usual few.
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/tanh.h>
#include <torch/nn/modules/linear.h>

#include <treadle/tensor/task_random.h>

#include "compile/planned_parts.h"
#include "pass.h"

namespace treadle::graph {
namespace {

using namespace testing;

/// Flows of rows of 6 numbers, made of few modules in many places.
class SharingFlows {
 public:
  explicit SharingFlows(unsigned seed) : random_(seed) {
    const TaskRandom weights(seed);
    torch::nn::Linear called(6, 6);
    called->to(at::kDouble);
    modules_ = {rows(6, 6), rows(6, 6), called};
    twins_ = std::make_shared<Twins>(0.75, -0.5);
    may_remember_ = false;
    graphs_.push_back(flow(1).build(spec_of({{6}})));
    may_remember_ = true;
    text_ = "G = " + text_ + "; ";
  }

  std::shared_ptr<Graph> graph() {
    const TaskRandom weights(17);
    const FlowBuilder all = flow(3);
    const auto graph = all.build(spec_of({{6}}));
    graph->to(at::kDouble);
    return graph;
  }

  /// What graph() made, for people.
  const std::string& text() const { return text_; }

 private:
  unsigned draw(unsigned choices) {
    return std::uniform_int_distribution<unsigned>(0, choices - 1)(random_);
  }

  FlowBuilder flow(int levels) {
    FlowBuilder flow;
    text_ += "(";
    const bool remembers = may_remember_ && draw(6) == 0;
    if (remembers) {
      text_ += "state ";
      flow.through(state_add()).using_({"state"});
    }
    flow.through(identity()).tag("begin");
    const unsigned steps = 1 + draw(3);
    for (unsigned i = 0; i < steps; ++i) {
      add_step(flow, levels);
      // What a loop makes larger and larger would differ in no bit at last.
      flow.through([](const at::Tensor& x) { return at::tanh(x); });
    }
    if (remembers)
      flow.tag("state");
    text_ += ")";
    return flow;
  }

  std::string new_tag() { return "tag_" + std::to_string(tags_++); }

  /// A part that may have no state.
  Part forgetful(int levels) {
    const bool before = std::exchange(may_remember_, false);
    Part made = part(levels);
    may_remember_ = before;
    return made;
  }

  Part part(int levels) {
    if (levels > 0 && draw(2) == 0)
      return flow(levels - 1);
    if (!graphs_.empty() && draw(4) == 0) {
      text_ += "G ";
      return graphs_.front();
    }
    const unsigned which = draw(static_cast<unsigned>(modules_.size()));
    text_ += "m" + std::to_string(which) + " ";
    return modules_[which];
  }

  std::vector<Part> parts(int levels) {
    std::vector<Part> parts;
    const unsigned count = 2 + draw(2);
    for (unsigned i = 0; i < count; ++i)
      parts.push_back(part(levels));
    return parts;
  }

  void add_step(FlowBuilder& flow, int levels) {
    switch (draw(14)) {
      case 0:
        text_ += "through ";
        flow.through(part(levels));
        break;
      case 1:
        text_ += "residual ";
        flow.residual(part(levels));
        break;
      case 2:
        text_ += "loop ";
        flow.loop(part(levels)).times(2 + draw(2));
        break;
      case 3:
        text_ += "map ";
        flow.map(part(levels)).each();
        break;
      case 4:
        text_ += "recompute ";
        flow.through(recompute(forgetful(levels)));
        break;
      case 5: {
        text_ += "mixture ";
        const std::vector<Part> experts = parts(levels);
        flow.mixture_of_experts(softmax_router(6, static_cast<std::int64_t>(experts.size())),
                                experts);
        break;
      }
      case 6: {
        text_ += "switch ";
        const std::vector<Part> branches = parts(levels);
        flow.switch_(argmax_selector(6, static_cast<std::int64_t>(branches.size())), branches);
        break;
      }
      case 7: {
        text_ += "switch by row ";
        const bool before = std::exchange(may_remember_, false);
        const std::vector<Part> branches = parts(levels);
        may_remember_ = before;
        flow.switch_(argmax_selector(6, static_cast<std::int64_t>(branches.size()), true), branches,
                     SwitchBy::kRow);
        break;
      }
      case 8:
        text_ += "ponder ";
        flow.loop(forgetful(levels)).adaptively(learned_halt(6), 3);
        break;
      case 9:
        text_ += "begin ";
        flow.through(plus_reference(0.5)).using_({"begin"});
        break;
      case 10: {
        text_ += "twins ";
        const std::string twin = new_tag();
        flow.through(twins_).tag_output("twin", twin);
        flow.through(part(levels)).through(plus_reference(0.5)).using_({twin});
        break;
      }
      case 11: {
        text_ += "outputs ";
        const std::string first = new_tag();
        const FlowBuilder within =
            this->flow(0).tag("first").through(part(0)).tag("last").outputs({"last", "first"});
        flow.through(within).tag_output("first", first);
        flow.through(part(levels)).through(plus_reference(0.5)).using_({first});
        break;
      }
      default:
        text_ += "split ";
        flow.split(parts(levels)).merge(add());
        break;
    }
  }

  std::mt19937 random_;
  std::vector<Part> modules_;
  std::shared_ptr<Twins> twins_;
  int tags_ = 0;
  std::vector<std::shared_ptr<Graph>> graphs_;
  bool may_remember_ = true;
  std::string text_;
};

/// Two steps of one stream, whose gradients are added up.
Pass pass_twice(Graph& graph, Branches branches) {
  graph.set_branches(branches);
  forget_gradients(graph);
  const TaskRandom random(17);
  const at::Tensor input = at::randn({5, 6}, at::kDouble).set_requires_grad(true);
  GraphState state(graph);
  Pass pass;
  for (int step = 0; step < 2; ++step) {
    pass.output = graph.run(std::vector<at::Tensor>{input}, state)[0];
    pass.output.square().sum().backward();
    state.detach();
  }
  pass.input_gradient = input.grad().clone();
  pass.gradients = gradients_of(graph);
  return pass;
}

TEST(SharedModules, HaveTheSameGradientsHoweverTheGraphRuns) {
  const char* const wanted = std::getenv("TREADLE_SHARING_FLOWS");
  const unsigned flows_to_try = wanted == nullptr ? 15 : static_cast<unsigned>(std::atoi(wanted));
  for (unsigned seed = 0; seed < flows_to_try; ++seed) {
    SharingFlows flows(seed);
    const std::shared_ptr<Graph> graph = flows.graph();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + flows.text());
    const Pass expected = pass_twice(*graph, Branches::kSequential);
    for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
      graph->set_execution(execution);
      for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
        SCOPED_TRACE(std::string(execution == Execution::kDynamic ? "dynamic" : "compiled") +
                     (branches == Branches::kSequential ? ", one by one" : ", at once"));
        with_threads(3, [&] { expect_same(pass_twice(*graph, branches), expected); });
      }
    }
    if (::testing::Test::HasFailure())
      break;
  }
}

}  // namespace
}  // namespace treadle::graph
