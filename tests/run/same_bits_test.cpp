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

TEST(SameSeed, HoldsForEveryWayToTrain) {
  const Runtime runtime;
  const nlohmann::json changes[] = {
      {{"model", {{"use", "mlp"}, {"hidden", {8}}, {"norm", "batch"}}}},
      {{"validation", {{"use", "hold_out"}}}},
      {{"dtype", "float64"}},
      {{"optimizer", {{"use", "lamb"}, {"learning_rate", 0.01}}}},
  };
  for (const nlohmann::json& change : changes) {
    nlohmann::json alone = moons(1);
    nlohmann::json together = moons(3);
    alone.update(change);
    together.update(change);
    EXPECT_EQ(bits_with(runtime, alone), bits_with(runtime, together)) << change;
  }
}

nlohmann::json with_shards(const nlohmann::json& shards, int workers) {
  nlohmann::json document = moons(workers);
  document["training"]["batch_size"] = 64;
  document["model"]["norm"] = "batch";
  document["resources"]["shards"] = shards;
  return document;
}

TEST(Shards, GiveTheSameBitsForAnyNumberOfWorkers) {
  const Runtime runtime;
  const std::string once = bits_with(runtime, with_shards(3, 1));

  for (const int workers : {2, 3, 8}) {
    EXPECT_EQ(once, bits_with(runtime, with_shards(3, workers))) << workers;
  }
  EXPECT_NE(once, bits_with(runtime, with_shards(1, 2))) << "there were no shards";
}

TEST(Shards, AreChosenByTheDocumentAloneAndWrittenDown) {
  const Runtime runtime;
  for (const int workers : {1, 8}) {
    const Workspace workspace;
    const auto run =
        run_workflow(runtime, runtime.resolve(with_shards("auto", workers)), workspace.options());
    const auto resolved = nlohmann::json::parse(testing::read_file(run.folder / "workflow.json"));
    EXPECT_EQ(resolved.at("resources").at("shards"), 2) << "one for 32 of 64 rows";
    EXPECT_EQ(bits_of(run.folder), bits_with(runtime, with_shards(2, 3)));
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
