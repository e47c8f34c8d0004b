#include "flow/wiring/tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The tags of a flow whose steps put "a" and "later", on two nodes that are there already.
class SomeTags : public ::testing::Test {
 protected:
  std::string last_problem() const {
    return net_.wired.problems.empty() ? "" : net_.wired.problems.back().message;
  }

  const FlowBuilder flow_ = FlowBuilder::from(testing::times(1))
                                .tag("a")
                                .through(testing::times(2))
                                .tag("later")
                                .split({testing::times(1), testing::times(1)})
                                .tag_group("group");
  Netlist net_{flow_};
  const Vertex first_ = net_.add({.id = "first", .type = "times"});
  const Vertex second_ = net_.add({.id = "second", .type = "times"});
  Tags tags_{net_};
};

TEST_F(SomeTags, AreDeclaredBeforeTheyAreThere) {
  EXPECT_TRUE(tags_.is_declared("later"));
  EXPECT_TRUE(tags_.is_declared("group_1"));
  EXPECT_FALSE(tags_.is_declared("group_2"));
  EXPECT_FALSE(tags_.is_put("later"));
}

TEST_F(SomeTags, NameTheirValues) {
  tags_.put("a", first_);
  EXPECT_TRUE(tags_.is_put("a"));
  EXPECT_EQ(tags_.find("a"), first_);
  EXPECT_EQ(tags_.value_or_state("a"), first_);
  EXPECT_THAT(net_.wired.description[first_].tags, ElementsAre("a"));
  EXPECT_EQ(last_problem(), "");
}

TEST_F(SomeTags, AreDistinctFromTypingErrors) {
  tags_.put("abc", first_);
  EXPECT_EQ(tags_.find("later"), std::nullopt);
  EXPECT_THAT(last_problem(), HasSubstr("comes only later"));
  EXPECT_EQ(tags_.find("abd"), std::nullopt);
  EXPECT_THAT(last_problem(), HasSubstr("nothing is tagged \"abd\"; did you mean \"abc\""));
}

TEST_F(SomeTags, AreUsedOnce) {
  tags_.put("a", first_);
  tags_.put("a", second_);
  EXPECT_EQ(last_problem(), "the tag \"a\" is used twice");
  EXPECT_EQ(tags_.find("a"), first_);
}

TEST_F(SomeTags, AreStatesWhereTheyAreReadFirst) {
  const Vertex read = tags_.value_or_state("later");
  EXPECT_EQ(tags_.value_or_state("later"), read);
  EXPECT_EQ(net_.wired.description[read].kind, NodeKind::kState);
  tags_.put("later", second_);
  const auto edge = boost::edge(second_, read, net_.wired.description);
  ASSERT_TRUE(edge.second);
  EXPECT_EQ(net_.wired.description[edge.first].kind, NodeInput::Kind::kState);
  tags_.close_states();
  EXPECT_EQ(last_problem(), "");
}

TEST_F(SomeTags, ThatNoStepPutsAreAMistakeOfTheirFirstReader) {
  net_.step = &flow_.steps()[1];
  tags_.value_or_state("never");
  net_.step = &flow_.steps()[2];
  tags_.close_states();
  EXPECT_THAT(last_problem(), HasSubstr("in step 2: uses \"never\", but nothing is tagged so"));
  EXPECT_EQ(net_.step, nullptr);
}

}  // namespace
}  // namespace treadle::graph
