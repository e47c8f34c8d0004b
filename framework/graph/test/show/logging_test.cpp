#include <treadle/graph/logging.h>

#include <chrono>
#include <thread>

#include <treadle/base/error.h>
#include <treadle/core/model/logged_values.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// x · 2 with the tags "doubled" and "again" behind it, then two heads, summed.
std::shared_ptr<Graph> two_heads() {
  return FlowBuilder::from(times(2))
      .tag("doubled")
      .split({times(1), times(10)})
      .tag_group("heads")
      .merge(add())
      .tag("sum")
      .build();
}

GraphState after_forward(const Graph& graph, std::initializer_list<double> values) {
  GraphState state(graph);
  graph.run(std::vector<at::Tensor>{row(values)}, state);
  return state;
}

TEST(Collecting, TakesTheValuesOfTagsAndGroups) {
  const auto graph = two_heads();
  const GraphState state = after_forward(*graph, {3});
  TrendRecorder recorder;

  collect(recorder, state, {"heads", "doubled"});

  EXPECT_THAT(recorder.tags(), ElementsAre("doubled", "heads_0", "heads_1"));
  EXPECT_THAT(recorder.collected("heads_1"), ElementsAre(60));
  collect(recorder, state);
  EXPECT_THAT(recorder.collected("sum"), ElementsAre(66)) << "no tags: all";
}

TEST(Collecting, AsksHowSeveralElementsBecomeOneNumber) {
  const auto graph = two_heads();
  const GraphState state = after_forward(*graph, {3, 5});
  TrendRecorder recorder;

  try {
    collect(recorder, state, {"doubled"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "\"doubled\" is [1, 2]; expected one number: say how its elements become one "
                 "(mean, sum, max, min, norm)");
  }
  collect(recorder, state, {"doubled"}, Reduction::kMean);
  EXPECT_THAT(recorder.collected("doubled"), ElementsAre(8));
}

TEST(Collecting, RefusesAnUnknownTag) {
  const auto graph = two_heads();
  const GraphState state = after_forward(*graph, {3});
  TrendRecorder recorder;

  try {
    collect(recorder, state, {"double"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "the graph has no tag \"double\"; did you mean \"doubled\"?");
  }
  EXPECT_THROW(collect_timings(recorder, state, {"double"}), UsageError);
}

TEST(CollectingTimings, TakesTheSecondsOfNodesThatRan) {
  const auto graph = FlowBuilder::from([](const at::Tensor& x) {
                       std::this_thread::sleep_for(20ms);
                       return x.mul(1);
                     })
                         .tag("slow")
                         .build();
  GraphState state(*graph);
  TrendRecorder timings;
  collect_timings(timings, state);
  EXPECT_THAT(timings.tags(), IsEmpty()) << "nothing was timed: zero durations are skipped";
  state.profile(true);
  graph->run(std::vector<at::Tensor>{row({1})}, state);
  graph->run(std::vector<at::Tensor>{row({1})}, state);

  collect_timings(timings, state);

  const double seconds = std::chrono::duration<double>(state.timing("slow")).count();
  EXPECT_GE(seconds, 0.02);
  EXPECT_THAT(timings.collected("slow"), ElementsAre(seconds));
  timings.flush();
  EXPECT_THAT(timings.trend("slow").values(), ElementsAre(seconds));
  timings.reset({"slow"});
  EXPECT_TRUE(timings.trend("slow").empty());
}

TEST(ValuesText, ShowsTheFirstElementsByName) {
  const auto graph = two_heads();
  const GraphState state = after_forward(*graph, {0.1234567, 5});

  EXPECT_EQ(values_text(state, {"sum", "doubled"}), "doubled: 0.246913 | sum: 2.71605");
  EXPECT_EQ(values_text(GraphState(*graph)), "") << "before the first forward";
}

/// The values that forwards of the graph as a model log.
std::vector<MetricValue> logged_by(Graph& graph, std::vector<at::Tensor> batches) {
  LoggedValues values;
  ForwardContext context;
  context.set_log(&values);
  for (const at::Tensor& batch : batches) {
    Outputs outputs(1);
    graph.forward(std::vector<at::Tensor>{batch}, outputs, context);
  }
  return values.means();
}

TEST(LoggedTags, AreLoggedByEachForwardWithALog) {
  const auto graph = two_heads();
  graph->set_logged_tags({{"heads", Reduction::kMean}, {"sum", Reduction::kMax}});

  const auto means = logged_by(*graph, {row({1, 3}), row({2, 4})});

  ASSERT_EQ(means.size(), 3U);
  EXPECT_EQ(means[0].name, "heads_0");
  EXPECT_EQ(means[0].value, 5);  // (4 + 6) / 2
  EXPECT_EQ(means[1].value, 50);
  EXPECT_EQ(means[2].value, 77);  // (66 + 88) / 2
  EXPECT_THAT(graph->logged_names(), ElementsAre("heads_0", "heads_1", "sum"));
}

TEST(LoggedTags, MayBeNodesByTheirNames) {
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    const auto graph = FlowBuilder::from(std::make_shared<Scale>(2))
                           .through(std::make_shared<Scale>(10))
                           .through(plus(1))
                           .named("last")
                           .build(spec_of({{2}}));
    graph->set_execution(execution);
    graph->set_logged_tags({{"Scale_*", Reduction::kSum}, {"last", Reduction::kMax}});

    const auto means = logged_by(*graph, {row({1, 2}), row({3, 4})});

    EXPECT_THAT(graph->logged_names(), ElementsAre("Scale_0", "Scale_1", "last"));
    ASSERT_EQ(means.size(), 3U);
    EXPECT_EQ(means[0].value, 10);  // (6 + 14) / 2
    EXPECT_EQ(means[1].value, 100);
    EXPECT_EQ(means[2].value, 61);  // (41 + 81) / 2
  }
}

// outer: x -> 2x -> inner; inner: -> 6x -> deep; deep: -> 30x -> 30x + 1.
TEST(LoggedTags, MayBeNodesOfGraphsWithin) {
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    const auto scale = [](double by) { return std::make_shared<Scale>(by); };
    const FlowBuilder deep = FlowBuilder::from(scale(5)).through(plus(1)).named("end");
    const FlowBuilder inner = FlowBuilder::from(scale(3)).through(deep).named("deep");
    const auto graph =
        FlowBuilder::from(scale(2)).through(inner).named("inner").build(spec_of({{2}}));
    graph->set_execution(execution);
    graph->set_logged_tags({{"inner.Scale_0", Reduction::kSum},
                            {"inner.deep.*", Reduction::kMax},
                            {"inner.deep.end", Reduction::kMin},
                            {"Scale_0", Reduction::kMax}});

    const auto means = logged_by(*graph, {row({1, 2}), row({3, 4})});

    EXPECT_THAT(graph->logged_names(),
                ElementsAre("inner.Scale_0", "inner.deep.Scale_0", "inner.deep.end",
                            "inner.deep.end.min", "Scale_0"));
    ASSERT_EQ(means.size(), 5U);
    EXPECT_EQ(means[0].value, 30);  // (18 + 42) / 2
    EXPECT_EQ(means[1].value, 90);  // (60 + 120) / 2
    EXPECT_EQ(means[2].value, 91);
    EXPECT_EQ(means[3].value, 61);  // (31 + 91) / 2
    EXPECT_EQ(means[4].value, 6);
    try {
      graph->set_logged_tags({{"inner.deep.ends", Reduction::kMax}});
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("did you mean \"inner.deep.end\"?"));
    }
  }
}

TEST(LoggedTags, AreNotLoggedWithoutALog) {
  const auto graph = two_heads();
  EXPECT_THAT(logged_by(*graph, {row({1})}), IsEmpty());
  graph->set_logged_tags({{"sum", std::nullopt}});
  ForwardContext context;
  Outputs outputs(1);

  graph->forward(std::vector<at::Tensor>{row({1, 2})}, outputs, context);

  EXPECT_EQ(outputs[0].size(1), 2);
  EXPECT_THROW(logged_by(*graph, {row({1, 2})}), UsageError) << "two elements, and no reduction";
}

TEST(LoggedTags, KeepNoValueBeyondTheForward) {
  const auto graph = two_heads();
  graph->set_logged_tags({{"sum", Reduction::kMean}});
  const at::Tensor batch = row({1, 2});
  at::Tensor output;
  {
    LoggedValues values;
    ForwardContext context;
    context.set_log(&values);
    Outputs outputs(1);
    graph->forward(std::vector<at::Tensor>{batch}, outputs, context);
    output = outputs[0];
  }
  // The one who asked has it, and nobody else.
  EXPECT_EQ(output.use_count(), 1U);
}

TEST(LoggedTags, AreTagsOfTheGraphEachOnce) {
  const auto graph = two_heads();
  const auto message = [&](std::vector<LoggedTag> tags) -> std::string {
    try {
      graph->set_logged_tags(tags);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };

  EXPECT_EQ(message({{"head", std::nullopt}}),
            "the graph has no tag and no node \"head\"; did you mean \"heads\"?");
  for (const std::optional<Reduction> by : {std::optional<Reduction>(), {Reduction::kMax}}) {
    EXPECT_EQ(message({{"sum", by}, {"sum", by}}),
              "\"sum\" is to be logged twice; leave one of them out");
  }
  EXPECT_EQ(message({{"sum", Reduction::kMean}, {"sum", Reduction::kMax}}), "");
  EXPECT_THAT(graph->logged_names(), ::testing::IsSupersetOf({"sum", "sum.max"}));
}

TEST(Parts, AreTheParametersOfTagsAndGroups) {
  const auto scale = [](double factor) { return std::make_shared<Scale>(factor); };
  const auto graph = FlowBuilder::from(scale(2))
                         .tag("first")
                         .split({scale(3), scale(4)})
                         .tag_group("heads")
                         .merge(add())
                         .tag("sum")
                         .build();

  EXPECT_THAT(graph->parameters_of_part("first"), ElementsAre("Scale_0.weight"));
  EXPECT_THAT(graph->parameters_of_part("heads"), ElementsAre("Scale_1.weight", "Scale_2.weight"));
  EXPECT_THAT(graph->parameters_of_part("sum"), IsEmpty());
  EXPECT_THAT(graph->part_names(),
              ::testing::UnorderedElementsAre("first", "heads_0", "heads_1", "sum", "heads"));
}

TEST(Log, GoesToTheHookElseToTheErrorStream) {
  const auto graph = two_heads();
  GraphState state = after_forward(*graph, {3});
  ::testing::internal::CaptureStderr();
  log(state, {"doubled"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "doubled: 6\n");

  std::vector<std::string> lines;
  state.on_log([&](const std::string& text) { lines.push_back(text); });
  ::testing::internal::CaptureStderr();
  log(state, {"sum", "doubled"});
  EXPECT_THAT(lines, ElementsAre("doubled: 6 | sum: 66"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");

  state.on_log({});
  ::testing::internal::CaptureStderr();
  log(state);
  EXPECT_NE(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(lines.size(), 1U);
}

}  // namespace
}  // namespace treadle::graph
