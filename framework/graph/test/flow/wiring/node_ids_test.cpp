#include "flow/wiring/node_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(NodeIds, CountNodesByType) {
  NodeIds ids({});
  EXPECT_EQ(ids.next("dense"), "dense_0");
  EXPECT_EQ(ids.next("tanh"), "tanh_0");
  EXPECT_EQ(ids.next("dense"), "dense_1");
  EXPECT_TRUE(ids.contains("dense_1"));
  EXPECT_FALSE(ids.contains("dense_2"));
}

TEST(NodeIds, SkipNamesOfAllStepsAndOfGroups) {
  NodeIds ids({"dense_0", "dense_2.out"});
  EXPECT_EQ(ids.next("dense"), "dense_1");
  EXPECT_EQ(ids.claim("dense_2.out"), std::nullopt);
  EXPECT_EQ(ids.next("dense"), "dense_3");
}

TEST(NodeIds, RefuseTheNameOfAnotherNodeOrInput) {
  NodeIds ids({});
  ids.add_input("text");
  EXPECT_EQ(ids.claim("encoder"), std::nullopt);
  EXPECT_THAT(ids.claim("encoder"), Optional(std::string("two nodes are named \"encoder\"")));
  EXPECT_THAT(ids.claim("text"), Optional(std::string("two nodes are named \"text\"")));
}

TEST(NodeIds, RefuseANodeThatIsAGroup) {
  NodeIds ids({});
  EXPECT_EQ(ids.claim("encoder.0"), std::nullopt);
  EXPECT_THAT(ids.claim("encoder"),
              Optional(HasSubstr("named \"encoder\" and another \"encoder.0\"")));
  EXPECT_THAT(ids.claim("encoder.0.out"),
              Optional(HasSubstr("named \"encoder.0.out\" and another \"encoder.0\"")));
  EXPECT_EQ(ids.claim("encoder.1"), std::nullopt);
}

TEST(NodeIds, LetAnInputHaveTheNameOfAGroup) {
  NodeIds ids({});
  ids.add_input("text");
  EXPECT_EQ(ids.claim("text.lengths"), std::nullopt);
}

TEST(NodeIds, AreOfLettersDigitsAndDots) {
  EXPECT_TRUE(is_name("a_B-1"));
  EXPECT_FALSE(is_name(""));
  EXPECT_FALSE(is_name("a.b"));
  EXPECT_TRUE(is_port_name("a.b.c"));
  EXPECT_FALSE(is_port_name("a..b"));
  EXPECT_FALSE(is_port_name("a."));
  EXPECT_THAT(NodeIds({}).claim("a b"), Optional(HasSubstr("must be of letters, digits")));
}

}  // namespace
}  // namespace treadle::graph
