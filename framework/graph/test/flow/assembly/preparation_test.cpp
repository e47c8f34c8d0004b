#include "flow/assembly/preparation.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Places without nodes that read these places.
std::unique_ptr<Graph::Impl> reading(std::vector<std::vector<std::size_t>> inputs) {
  auto graph = std::make_unique<Graph::Impl>();
  graph->places.resize(inputs.size());
  graph->nodes.resize(inputs.size());
  for (std::size_t place = 0; place < inputs.size(); ++place)
    graph->places[place].inputs = std::move(inputs[place]);
  return graph;
}

TEST(Preparation, FreesAValueAfterItsLastUse) {
  const auto graph = reading({{}, {0}, {0}, {1}});
  graph->outputs = {3};
  prepare(*graph);
  EXPECT_THAT(graph->places[0].done, IsEmpty());
  EXPECT_THAT(graph->places[1].done, IsEmpty());
  EXPECT_THAT(graph->places[2].done, ElementsAre(0, 2));  // nothing reads its own
  EXPECT_THAT(graph->places[3].done, ElementsAre(1));
}

TEST(Preparation, KeepsOutputsAndStates) {
  const auto graph = reading({{}, {0}, {1}, {2}});
  graph->outputs = {1};
  graph->states.emplace_back().written = 2;
  prepare(*graph);
  EXPECT_THAT(graph->places[1].done, ElementsAre(0));
  EXPECT_THAT(graph->places[2].done, IsEmpty());
  EXPECT_THAT(graph->places[3].done, ElementsAre(3));
}

TEST(Preparation, SharesAValueThatSeveralPlacesRead) {
  const auto graph = reading({{}, {0}, {0, 1}});
  prepare(*graph);
  EXPECT_THAT(graph->places[1].is_shared, ElementsAre(true));
  EXPECT_THAT(graph->places[2].is_shared, ElementsAre(true, false));
}

TEST(Preparation, CountsAPlaceThatReadsAValueTwiceOnce) {
  const auto graph = reading({{}, {0, 0}});
  prepare(*graph);
  EXPECT_THAT(graph->places[1].is_shared, ElementsAre(false, false));
}

TEST(Preparation, CountsTagsOutputsAndStatesAsUsers) {
  const auto graph = reading({{}, {0}, {1}, {2}, {3}});
  graph->places[0].tag_slot = 0;
  graph->outputs = {1};
  graph->states.emplace_back().written = 2;
  prepare(*graph);
  EXPECT_THAT(graph->places[1].is_shared, ElementsAre(true));
  EXPECT_THAT(graph->places[2].is_shared, ElementsAre(true));
  EXPECT_THAT(graph->places[3].is_shared, ElementsAre(true));
  EXPECT_THAT(graph->places[4].is_shared, ElementsAre(false));
}

}  // namespace
}  // namespace treadle::graph
