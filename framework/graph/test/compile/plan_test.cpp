// What a plan says of itself.
#include "planned_parts.h"

#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;

plan::Plan plan_of(const FlowBuilder& flow, const at::Tensor& input) {
  const auto graph = flow.build(spec_of({{4}}));
  return graph->compile({&input, 1});
}

TEST(Plan, IsWhatTheGraphSaysAndThenItsGradients) {
  const plan::Plan plan = plan_of(mlp(), at::randn({6, 4}, at::kDouble));

  EXPECT_THAT(operations(plan),
              ElementsAre("linear", "relu", "linear", "relu", "linear", "linear_gradient",
                          "relu_gradient", "linear_gradient", "relu_gradient", "linear_gradient"));
  EXPECT_TRUE(plan.records_gradients());
  EXPECT_TRUE(plan.instructions().back().is_backward);
  EXPECT_EQ(plan.instructions().front().node, "Rows_0");
  EXPECT_EQ(plan.dynamic_nodes(), 0U);
  EXPECT_THAT(plan.calls(), ::testing::IsEmpty());
  ASSERT_EQ(plan.input_slots().size(), 1U);
  EXPECT_EQ(plan.slots()[plan.input_slots()[0]].memory, plan::Memory::kInput);
  ASSERT_EQ(plan.output_slots().size(), 1U);
  EXPECT_EQ(plan.slots()[plan.output_slots()[0]].spec.text(), "[6, 2]");
}

TEST(Plan, LookingAtItDoesNotChangeHowTheGraphRuns) {
  const auto graph = mlp().build(spec_of({{4}}));

  graph->compile(6);

  EXPECT_EQ(graph->execution(), Execution::kDynamic);
}

TEST(Plan, WithoutGradientsIsTheForwardAlone) {
  const at::NoGradGuard no_gradients;
  const plan::Plan plan = plan_of(mlp(), at::randn({6, 4}, at::kDouble));

  EXPECT_THAT(operations(plan), ElementsAre("linear", "relu", "linear", "relu", "linear"));
  EXPECT_FALSE(plan.records_gradients());
}

TEST(Plan, SlotsThatLiveAtTheSameTimeDoNotOverlap) {
  for (const bool records : {true, false}) {
    const at::AutoGradMode gradients(records);
    const plan::Plan plan = plan_of(
        FlowBuilder::from(rows(4, 4))
            .tag("first")
            .split({rows(4, 6), rows(4, 6), FlowBuilder::from(rectify()).through(rows(4, 6))})
            .merge(mean())
            .residual(FlowBuilder::from(rows(6, 6)).through(rectify()))
            .through(rows(6, 2)),
        at::randn({5, 4}, at::kDouble));
    struct Life {
      std::size_t first = static_cast<std::size_t>(-1);
      std::size_t last = 0;
    };
    const auto slots = plan.slots();
    const auto instructions = plan.instructions();
    std::vector<Life> lives(slots.size());
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      for (const auto* list : {&instructions[i].inputs, &instructions[i].outputs}) {
        for (const std::size_t slot : *list) {
          Life& life = lives[slots[slot].root];
          life.first = std::min(life.first, i);
          life.last = std::max(life.last, i);
        }
      }
    }
    std::size_t compared = 0;
    for (std::size_t a = 0; a < slots.size(); ++a) {
      if (slots[a].root != a || slots[a].memory != plan::Memory::kArena)
        continue;
      EXPECT_EQ(slots[a].offset % 256, 0U);
      EXPECT_LE(slots[a].offset + slots[a].bytes, plan.arena_bytes());
      for (std::size_t b = a + 1; b < slots.size(); ++b) {
        if (slots[b].root != b || slots[b].memory != plan::Memory::kArena)
          continue;
        // A pass writes over what it is the last to read: the same place at the same instant.
        const bool at_once = lives[a].first < lives[b].last && lives[b].first < lives[a].last;
        const bool overlap = slots[a].offset < slots[b].offset + slots[b].bytes &&
                             slots[b].offset < slots[a].offset + slots[a].bytes;
        EXPECT_FALSE(at_once && overlap) << a << " and " << b;
        compared += at_once ? 1 : 0;
      }
    }
    EXPECT_GT(compared, 5U);
    EXPECT_LT(plan.arena_bytes(), plan.unshared_bytes() + 256 * slots.size());
  }
}

TEST(Plan, MemoryOfWhatIsDoneIsUsedAgain) {
  const at::NoGradGuard no_gradients;
  FlowBuilder deep = FlowBuilder::from(rows(4, 64));
  for (int i = 0; i < 20; ++i)
    deep.through(rows(64, 64)).through(rectify());
  const plan::Plan plan = plan_of(deep, at::randn({32, 4}, at::kDouble));

  constexpr std::size_t kValue = 32 * 64 * sizeof(double);
  EXPECT_LE(plan.arena_bytes(), 2 * kValue) << "one is read while the next is written";
  EXPECT_GE(plan.unshared_bytes(), 40 * kValue);
}

TEST(Plan, AdjacentElementwiseOperationsAreOneKernel) {
  const plan::Plan plan = plan_of(FlowBuilder::from(rows(4, 4))
                                      .tag("first")
                                      .through(rectify())
                                      .through(add())
                                      .using_({"first"})
                                      .through(rectify())
                                      .through(rows(4, 2)),
                                  at::randn({6, 4}, at::kDouble));

  EXPECT_THAT(operations(plan), ElementsAre("linear", "relu add relu", "linear", "linear_gradient",
                                            "relu_gradient relu_gradient add", "linear_gradient"));
  EXPECT_EQ(plan.elementwise_ops(), 6U);
  EXPECT_EQ(plan.fused_kernels(), 2U);
}

TEST(Plan, SaysWhatItOnlyCallsAndWhy) {
  const auto why = [](const FlowBuilder& flow) {
    const plan::Plan plan = plan_of(flow, at::randn({6, 4}, at::kDouble));
    std::string text;
    for (const plan::CallInfo& call : plan.calls())
      text += call.node + ": " + call.why + (call.is_dynamic ? " (dynamic)" : "");
    EXPECT_EQ(plan.dynamic_nodes(), text.find("dynamic") == std::string::npos ? 0U : 1U);
    return text;
  };

  EXPECT_EQ(why(FlowBuilder::from(times(2)).named("twice")),
            "twice: its layer cannot be lowered to operations");
  EXPECT_EQ(why(FlowBuilder::from(rows(4, 4))
                    .loop(rectify())
                    .until(threshold_halt(9), 3)
                    .named("search")),
            "search: its number of rounds depends on values (dynamic)");
  EXPECT_EQ(why(FlowBuilder::from(rows(4, 4))
                    .switch_(fixed_selector(0), {rows(4, 2), rows(4, 2)})
                    .named("choice")),
            "choice: the branch depends on values (dynamic)");
  EXPECT_EQ(why(FlowBuilder::from(rows(4, 4)).map(rectify()).each().named("pieces")),
            "pieces: it calls its body piece by piece");
}

TEST(Plan, IsATableForPeople) {
  const at::NoGradGuard no_gradients;
  const plan::Plan plan = plan_of(FlowBuilder::from(rows(4, 8))
                                      .named("first")
                                      .through(rectify())
                                      .through(times(2))
                                      .named("twice"),
                                  at::randn({6, 4}, at::kDouble));

  EXPECT_EQ(plan.text(),
            "step  operation  node       takes  gives  sizes\n"
            "0     linear     first      0      1      [6, 8]\n"
            "1     relu       Rectify_0  1      2      [6, 8]\n"
            "2     call       twice      2      3      [6, 8]\n"
            "512 bytes of memory for values; without sharing 768\n"
            "called: \"twice\", because its layer cannot be lowered to operations\n");
}

}  // namespace
}  // namespace treadle::graph
