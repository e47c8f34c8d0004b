#include <gtest/gtest.h>

#include "workspace.h"

namespace treadle {
namespace {

using testing::bits_of;
using testing::moons;
using testing::Workspace;

std::string bits_with(const Runtime& runtime, const nlohmann::json& document) {
  const Workspace workspace;
  return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
}

TEST(SameSeed, GivesTheSameBitsTwiceAndForAnyNumberOfWorkers) {
  const Runtime runtime;
  const std::string once = bits_with(runtime, moons(1));

  EXPECT_EQ(once, bits_with(runtime, moons(1)));
  EXPECT_EQ(once, bits_with(runtime, moons(2)));
  EXPECT_EQ(once, bits_with(runtime, moons(3)));
}

TEST(SameSeed, HoldsForEverySourceOfRandomness) {
  const Runtime runtime;
  const nlohmann::json changes[] = {
      {{"model", {{"use", "mlp"}, {"hidden", {8}}, {"dropout", 0.5}}}},
      {{"model", {{"use", "mlp"}, {"hidden", {8}}, {"norm", "batch"}}}},
      {{"validation", {{"use", "hold_out"}}}},
      {{"dtype", "float64"}},
  };
  for (const nlohmann::json& change : changes) {
    nlohmann::json alone = moons(1);
    nlohmann::json together = moons(3);
    alone.update(change);
    together.update(change);
    EXPECT_EQ(bits_with(runtime, alone), bits_with(runtime, together)) << change;
  }
}

TEST(OtherSeed, GivesOtherBits) {
  const Runtime runtime;
  nlohmann::json other = moons(1);
  other["seed"] = 12;

  EXPECT_NE(bits_with(runtime, moons(1)), bits_with(runtime, other));
}

}  // namespace
}  // namespace treadle
