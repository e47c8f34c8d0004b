#include <treadle/engine/stage_graph.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>

#include <treadle/base/error.h>
#include <treadle/engine/thread_budget.h>

namespace treadle::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A graph whose stages write their names down, in the order they ran.
struct Recording {
  StageGraph graph;
  std::mutex mutex;
  std::vector<std::string> ran;

  void add(const std::string& name, std::vector<std::string> after) {
    graph.add(name, std::move(after), [this, name](std::stop_token) {
      const std::lock_guard lock(mutex);
      ran.push_back(name);
    });
  }
};

std::string refusal(const StageGraph& graph) {
  try {
    graph.check();
  } catch (const ContractViolation& error) {
    return error.what();
  }
  return "";
}

TEST(StageGraph, RunsStagesInAnOrderThatRespectsDependencies) {
  Recording stages;
  stages.add("report", {"train", "split"});
  stages.add("train", {"split"});
  stages.add("split", {"load"});
  stages.add("load", {});
  ThreadBudget budget(2);

  budget.run([&] { stages.graph.run(); });

  EXPECT_THAT(stages.ran, ElementsAre("load", "split", "train", "report"));
  EXPECT_THAT(stages.graph.order(), ElementsAre("load", "split", "train", "report"));
}

TEST(StageGraph, RunsIndependentStagesAtOnce) {
  StageGraph graph;
  std::barrier meet(2);  // each waits for the other: alone, neither would end
  graph.add("left", {}, [&](std::stop_token) { meet.arrive_and_wait(); });
  graph.add("right", {}, [&](std::stop_token) { meet.arrive_and_wait(); });
  ThreadBudget budget(2);

  budget.run([&] { graph.run(); });
}

TEST(StageGraph, NamesACycleAsAPath) {
  Recording stages;
  stages.add("a", {"c"});
  stages.add("b", {"a"});
  stages.add("c", {"b"});

  EXPECT_EQ(refusal(stages.graph), "the stage graph cannot run: cycle: a -> b -> c -> a");
}

TEST(StageGraph, ReportsEveryMistakeAtOnce) {
  Recording stages;
  stages.add("a", {"nowhere"});
  stages.add("a", {});

  const std::string text = refusal(stages.graph);

  EXPECT_THAT(text, HasSubstr("two stages are called \"a\""));
  EXPECT_THAT(text, HasSubstr("stage \"a\" waits for \"nowhere\", which does not exist"));
}

TEST(StageGraph, SkipsWhatDependsOnAFailureAndRethrowsIt) {
  Recording stages;
  stages.graph.add("load", {}, [](std::stop_token) { throw DataError("the file is empty"); });
  stages.add("train", {"load"});
  stages.add("aside", {});
  ThreadBudget budget(2);
  std::string message;

  budget.run([&] {
    try {
      stages.graph.run();
    } catch (const DataError& error) {
      message = error.what();
    }
  });

  EXPECT_EQ(message, "the file is empty");
  EXPECT_THAT(stages.ran, ElementsAre("aside"));
}

TEST(StageGraph, CanRunAgainAfterAFailure) {
  std::atomic<int> calls{0};
  StageGraph graph;
  graph.add("flaky", {}, [&](std::stop_token) {
    if (calls++ == 0)
      throw DataError("first time");
  });
  ThreadBudget budget(2);

  budget.run([&] {
    EXPECT_THROW(graph.run(), DataError);
    EXPECT_NO_THROW(graph.run());
  });
}

TEST(StageGraph, StartsNothingOnceAStopIsRequested) {
  std::stop_source stop;
  StageGraph graph;
  bool second_ran = false;
  graph.add("first", {}, [&](std::stop_token) { stop.request_stop(); });
  graph.add("second", {"first"}, [&](std::stop_token) { second_ran = true; });
  ThreadBudget budget(1);

  budget.run([&] { graph.run(stop.get_token()); });

  EXPECT_FALSE(second_ran);
}

TEST(StageGraph, DrawsItselfWithHostileNames) {
  StageGraph graph;
  graph.add(
      "load", {}, [](std::stop_token) {}, "data: \"a\\b\"");
  graph.add("train", {"load"}, [](std::stop_token) {});

  EXPECT_EQ(graph.dot("my \"run\""),
            "digraph \"my \\\"run\\\"\" {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n"
            "  \"load\" [label=\"data: \\\"a\\\\b\\\"\"];\n  \"train\" [label=\"train\"];\n"
            "  \"load\" -> \"train\";\n}\n");
}

}  // namespace
}  // namespace treadle::engine
