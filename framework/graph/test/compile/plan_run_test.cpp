// A plan, run in pieces.
#include "planned_parts.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/graph/plan_run.h>
#include <treadle/tensor/task_random.h>

namespace treadle::graph {
namespace {

using namespace testing;

TEST(PlanRun, InPiecesGivesTheBitsOfTheGraph) {
  for (const bool records : {true, false}) {
    const at::AutoGradMode gradients(records);
    const auto graph = FlowBuilder::from(rows(4, 8))
                           .through(rectify())
                           .through(times(0.5))
                           .residual(FlowBuilder::from(rows(8, 8)).through(rectify()))
                           .through(rows(8, 2))
                           .build(spec_of({{4}}));
    const at::Tensor input = at::randn({6, 4}, at::kDouble);
    const plan::Plan plan = graph->compile({&input, 1});
    const auto instructions = plan.instructions();
    std::size_t forward = 0;
    while (forward < instructions.size() && !instructions[forward].is_backward)
      ++forward;
    ASSERT_GE(forward, 5U);
    PlanRun run(*graph, plan);

    run.load({&input, 1});
    for (std::size_t i = 0; i < forward; ++i)
      run.run(i, i + 1);

    const at::Tensor expected = graph->forward(input);
    EXPECT_TRUE(at::equal(run.value(plan.output_slots()[0]), expected));
    run.run();
    EXPECT_TRUE(at::equal(run.value(plan.output_slots()[0]), expected)) << "again, as a whole";
  }
}

TEST(PlanRun, ContinuesFromALoadedValue) {
  const auto graph = mlp().build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const plan::Plan plan = graph->compile({&input, 1});
  PlanRun whole(*graph, plan);
  whole.load({&input, 1});
  whole.run();
  const std::size_t middle = plan.instructions()[1].outputs[0];
  PlanRun rest(*graph, plan);

  rest.load(middle, whole.value(middle));
  rest.run(2, 5);

  EXPECT_TRUE(at::equal(rest.value(plan.output_slots()[0]), whole.value(plan.output_slots()[0])));
  EXPECT_THROW(rest.value(plan.instructions()[0].outputs[0]), DataError);
}

TEST(PlanRun, ValuesStayThereUntilTheirInstructionRunsAgain) {
  const auto graph = mlp().build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const plan::Plan plan = graph->compile({&input, 1});
  PlanRun run(*graph, plan);
  run.load({&input, 1});
  run.run(0, 1);
  const std::size_t first = plan.instructions()[0].outputs[0];
  const at::Tensor before = run.value(first).clone();

  run.run(1, 5);

  EXPECT_TRUE(at::equal(run.value(first), before));
  const at::Tensor held = run.value(first);
  const at::Tensor other = input.mul(2);
  run.load({&other, 1});
  run.run();
  EXPECT_TRUE(at::equal(held, before)) << "what somebody holds is not written to";
  EXPECT_FALSE(at::equal(run.value(first), before));
}

TEST(PlanRun, RefusesWhatThePlanDoesNotHave) {
  const auto graph = mlp().build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  const plan::Plan plan = graph->compile({&input, 1});
  PlanRun run(*graph, plan);
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  using ::testing::HasSubstr;

  EXPECT_THAT(message([&] { run.run(0, 1); }),
              HasSubstr("instruction 0, of node \"Rows_0\", reads slot 0, which nothing has "
                        "written"));
  EXPECT_THAT(message([&] { run.run(3, 6); }),
              HasSubstr("has 5 instructions, so none from 3 to 6"));
  EXPECT_THAT(message([&] { run.run(2, 1); }), HasSubstr("none from 2 to 1"));
  EXPECT_THAT(message([&] { run.load(99, input); }), HasSubstr("got 99"));
  const at::Tensor wide = at::randn({6, 5}, at::kDouble);
  EXPECT_THAT(message([&] { run.load({&wide, 1}); }), HasSubstr("slot 0 of the plan holds [6, 4]"));
  EXPECT_THAT(message([&] { run.load({}); }), HasSubstr("takes 1 inputs, got 0"));
}

TEST(PlanRun, RefusesAPlanForOtherModes) {
  const auto graph = mlp().build(spec_of({{4}}));
  const at::Tensor input = at::randn({6, 4}, at::kDouble);
  PlanRun run(*graph, graph->compile({&input, 1}));
  run.load({&input, 1});
  graph->eval();

  EXPECT_THROW(run.run(), TrainingError);
}

}  // namespace
}  // namespace treadle::graph
