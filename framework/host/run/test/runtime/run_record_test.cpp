#include "runtime/run_record.h"

#include <gmock/gmock.h>

namespace treadle::internal {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

json plugin(const json& id, const json& version) {
  return {{"id", id}, {"version", version}, {"build_id", "f0"}};
}

const json kNow{{"libtorch", "1.13.0"}, {"plugins", json::array({plugin("org.a", "1")})}};

TEST(Differences, AreNoneOfARecordAndItself) {
  EXPECT_THAT(differences(kNow, kNow), IsEmpty());
}

// The record of a study in a storage is what somebody has written there.
TEST(Differences, MayBeOfAnyKind) {
  const json before{{"libtorch", {1, 13}},
                    {"plugins", json::array({7, plugin(7, 1), plugin("org.a", 2)})}};

  EXPECT_THAT(differences(before, kNow),
              ElementsAre("libtorch was [1,13] and is now 1.13.0",
                          "plugin org.a was version 2 (build f0) and is now version 1 (build f0)"));
}

TEST(Differences, DoNothingToATerminal) {
  const json before{{"libtorch", "\x1b[2J"}, {"plugins", "none"}};

  EXPECT_THAT(differences(before, kNow), ElementsAre("libtorch was \\u001b[2J and is now 1.13.0",
                                                     "plugin org.a was not used before"));
}

}  // namespace
}  // namespace treadle::internal
