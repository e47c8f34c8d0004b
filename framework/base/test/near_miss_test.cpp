#include <treadle/base/near_miss.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

using Words = std::vector<std::string>;

TEST(EditDistance, CountsEditsAndSwapsOfNeighbours) {
  EXPECT_EQ(edit_distance("adam", "adam"), 0U);
  EXPECT_EQ(edit_distance("adma", "adam"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);  // no part is edited twice
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("Batch-Size", "batch_size"), 0U);
}

TEST(NearMisses, AreAtMostThreeAndTheNearestFirst) {
  const Words candidates{"adamw", "adam", "adamax", "nadam", "sgd", "radam"};

  EXPECT_EQ(near_misses("adam", candidates), (Words{"adam", "adamw", "nadam"}));
  EXPECT_EQ(near_misses("sdg", candidates), Words{"sgd"});
  EXPECT_EQ(near_misses("quantum", candidates), Words{});
}

TEST(NearMisses, AllowOneEditInAThird) {
  const Words candidates{"learning_rate"};

  EXPECT_EQ(near_misses("learning_rat", candidates), candidates);
  EXPECT_EQ(near_misses("lerningrate", candidates), candidates);
  EXPECT_EQ(near_misses("lxrxnxngxrate", candidates), Words{});
  EXPECT_EQ(near_misses("a", Words{"b"}), Words{});
  EXPECT_EQ(near_misses("component", Words{"components", "compounds"}), Words{"components"});
  EXPECT_EQ(near_misses(std::string(100000, 'a'), candidates), Words{});
}

TEST(DidYouMean, ReadsAsAQuestion) {
  EXPECT_EQ(did_you_mean("x", Words{"relu"}), "");
  EXPECT_EQ(did_you_mean("rely", Words{"relu", "gelu"}), "; did you mean \"relu\"?");
  EXPECT_EQ(did_you_mean("aac", Words{"aab", "aad"}), "; did you mean \"aab\" or \"aad\"?");
  EXPECT_EQ(did_you_mean("aac", Words{"aab", "aad", "aae", "aaf"}),
            "; did you mean \"aab\", \"aad\" or \"aae\"?");
}

TEST(NearMisses, TakeAbbreviationsWhereNoWordIsNear) {
  const std::vector<std::string> keys{"learning_rate", "weight_decay", "separator", "betas"};
  EXPECT_EQ(did_you_mean("lr", keys), "; did you mean \"learning_rate\"?");
  EXPECT_EQ(did_you_mean("sep", keys), "; did you mean \"separator\"?");
  EXPECT_EQ(did_you_mean("decay", keys), "; did you mean \"weight_decay\"?");
  EXPECT_EQ(did_you_mean("WD", keys), "; did you mean \"weight_decay\"?");
  EXPECT_EQ(did_you_mean("se", keys), "");
  EXPECT_EQ(did_you_mean("l", keys), "");
}

TEST(NameList, HasTheFirstTwentyAndNothingThatATerminalObeys) {
  EXPECT_EQ(name_list({}), "none");
  EXPECT_EQ(name_list(Words{"x", "a \"b\"", "\x1b[2J"}), "x, a \"b\", \\u001b[2J");
  Words names(20, "n");
  EXPECT_EQ(name_list(names).size(), 58U);
  names.insert(names.end(), 2, "cut");
  EXPECT_EQ(name_list(names), name_list(std::span(names).first(20)) + " and 2 more");
}

}  // namespace
}  // namespace treadle
