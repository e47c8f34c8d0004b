#include <treadle/graph/profile.h>

#include <chrono>
#include <thread>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>
#include <treadle/graph/picture.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

Part sleeps(std::chrono::milliseconds time) {
  return [time](const at::Tensor& x) {
    std::this_thread::sleep_for(time);
    return x.mul(1);
  };
}

void run_once(const Graph& graph, GraphState& state) {
  graph.run(std::vector<at::Tensor>{row({1})}, state);
}

TEST(Profiles, HaveEveryNodeAndLevelOfTheLastForward) {
  const auto graph =
      FlowBuilder::from(sleeps(20ms)).tag("slow").split({times(1), times(2)}).merge(add()).build();
  GraphState state(*graph);
  EXPECT_EQ(state.last_profile(), nullptr);
  state.profile(true);

  run_once(*graph, state);

  const Profile* profile = state.last_profile();
  ASSERT_NE(profile, nullptr);
  ASSERT_EQ(profile->nodes.size(), 4U);
  EXPECT_EQ(profile->nodes[0].id, "Function_0");
  EXPECT_EQ(profile->nodes[0].tag, "slow");
  EXPECT_GE(profile->nodes[0].duration, 20ms);
  EXPECT_EQ(profile->nodes[0].level, 1U);
  ASSERT_EQ(profile->levels.size(), 3U);
  EXPECT_EQ(profile->levels[1].nodes, 2U);
  EXPECT_EQ(profile->levels[1].sum_of_nodes,
            profile->nodes[1].duration + profile->nodes[2].duration);
  EXPECT_EQ(state.timing("slow"), profile->nodes[0].duration);
  EXPECT_EQ(state.timing("none"), 0ns);
  EXPECT_GE(profile->total(), 20ms);
}

TEST(Profiles, OfTheForwardThatCompilesAGraphOfBranches) {
  const auto graph = FlowBuilder().split({sleeps(20ms), times(2)}).merge(add()).build();
  graph->set_execution(Execution::kCompiled);
  graph->set_branches(Branches::kParallel);  // planned in the first forward
  GraphState state(*graph);
  state.profile(true);

  run_once(*graph, state);

  const Profile* profile = state.last_profile();
  ASSERT_NE(profile, nullptr);
  ASSERT_EQ(profile->nodes.size(), 3U);
  EXPECT_GE(profile->nodes[0].duration, 20ms);
}

TEST(Profiles, EndWithTheirMeasurements) {
  const auto graph = FlowBuilder::from(times(1)).tag("t").build();
  GraphState state(*graph);
  state.profile(true);
  run_once(*graph, state);
  state.profile(false);

  EXPECT_EQ(state.last_profile(), nullptr);
  EXPECT_EQ(state.timing("t"), 0ns);
}

TEST(Profiles, OfGraphsWithin) {
  const FlowBuilder inner = FlowBuilder::from(times(1)).through(sleeps(5ms));
  const auto graph = FlowBuilder::from(inner).tag("inner").through(times(1)).build();
  GraphState state(*graph);
  state.profile(true);
  run_once(*graph, state);

  ASSERT_NE(state.sub("inner")->last_profile(), nullptr);
  EXPECT_GE(state.sub("inner")->last_profile()->nodes[1].duration, 5ms);
}

TEST(Profiles, FollowBranchesToOtherThreads) {
  const auto graph = FlowBuilder().split({sleeps(60ms), sleeps(60ms)}).merge(add()).build();
  GraphState state(*graph);
  state.profile(true);
  graph->set_branches(Branches::kSequential);
  run_once(*graph, state);
  EXPECT_LT(state.last_profile()->levels[0].parallelism(), 1.1);

  graph->set_branches(Branches::kParallel);
  const oneapi::tbb::global_control allowed(oneapi::tbb::global_control::max_allowed_parallelism,
                                            2);
  // On a busy machine the second thread may come when the first has done all.
  double parallelism = 0;
  for (int time = 0; time < 200 && parallelism < 1.1; ++time) {
    oneapi::tbb::task_arena(2).execute([&] { run_once(*graph, state); });
    parallelism = state.last_profile()->levels[0].parallelism();
  }
  EXPECT_GT(parallelism, 1.1);
}

TEST(Profiles, OfOneNodeHaveAParallelismOfOne) {
  EXPECT_EQ(LevelTiming({0, 5ns, 10ns, 1}).parallelism(), 1);
  EXPECT_EQ(LevelTiming({0, 0ns, 10ns, 2}).parallelism(), 1);
  EXPECT_EQ(LevelTiming({0, 5ns, 10ns, 2}).parallelism(), 2);
}

TEST(Profiles, ArePrintedTheSlowestFirst) {
  const Profile profile{{{"quick", "", 1us, 1}, {"slow", "", 3us, 2}}, {}};
  EXPECT_EQ(profile.text(),
            "node       time   share  level\n"
            "slow        3us   75.0 %      2\n"
            "quick       1us   25.0 %      1\n");
}

TEST(Profiles, AreHandedOutAfterEachForwardThatIsTimed) {
  const auto graph = FlowBuilder::from(times(1)).split({times(1), times(2)}).merge(add()).build();
  GraphState state(*graph);
  std::vector<std::size_t> nodes;
  state.on_profile([&](const Profile& profile) { nodes.push_back(profile.nodes.size()); });
  const auto run = [&] { graph->run(std::vector<at::Tensor>{row({1})}, state); };
  run();
  EXPECT_TRUE(nodes.empty()) << "it was not timed";
  state.profile(true);
  run();
  run();
  EXPECT_EQ(nodes, (std::vector<std::size_t>{4, 4}));
  state.on_profile({});
  run();
  EXPECT_EQ(nodes.size(), 2U);
}

TEST(Profiles, ColourThePicture) {
  const auto graph = FlowBuilder::from(times(1)).split({times(1), times(2)}).merge(add()).build();
  GraphState state(*graph);
  EXPECT_THROW(dot_with_profile(*graph, state), UsageError);
  const Profile profile{{{"Function_0", "", 0us, 1},
                         {"Function_1", "", 10us, 2},
                         {"Function_2", "", 5us, 2},
                         {"add_0", "", 1us, 3}},
                        {{2, 10us, 15us, 2}}};

  EXPECT_THAT(
      dot(*graph, {"", &profile}),
      AllOf(HasSubstr("\"Function_0\" [label=\"Function_0\\n0ns\", shape=box, fillcolor=\"0.333 "
                      "0.450 1.000\"]"),
            HasSubstr("\"Function_1\" [label=\"Function_1\\n10us\", shape=box, fillcolor=\"0.000 "
                      "0.450 1.000\"]"),
            HasSubstr("fillcolor=\"0.167 0.450 1.000\""), HasSubstr("level 2: 1.5 at once")));
}

TEST(ShortTime, HasUnits) {
  EXPECT_EQ(short_time(850ns), "850ns");
  EXPECT_EQ(short_time(42us), "42us");
  EXPECT_EQ(short_time(1200us), "1.2ms");
  EXPECT_EQ(short_time(3400ms), "3.4s");
}

}  // namespace
}  // namespace treadle::graph
