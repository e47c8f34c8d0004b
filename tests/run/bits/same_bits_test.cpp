#include <gmock/gmock.h>

#include "workspace.h"

namespace treadle {
namespace {

using ::testing::AllOf;
using testing::bits_of;
using ::testing::Contains;
using ::testing::EndsWith;
using testing::moons;
using ::testing::StartsWith;
using testing::Workspace;

std::string bits_with(const Runtime& runtime, const nlohmann::json& document) {
  const Workspace workspace;
  return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
}

nlohmann::json result_of(const std::filesystem::path& folder) {
  return nlohmann::json::parse(testing::read_file(folder / "result.json"));
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
      {{"precision", "float64"}},
      {{"optimizer", {{"use", "lamb"}, {"learning_rate", 0.01}}}},
      {{"optimizer", {{"use", "muon"}}}, {"resources", {{"shards", 4}}}},
      {{"optimizer", {{"use", "soap"}}}},
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
  const auto heavy = [](const nlohmann::json& shards, int workers) {
    nlohmann::json document = with_shards(shards, workers);
    document["model"]["hidden"] = {512, 512};
    return document;
  };
  for (const int workers : {1, 8}) {
    const Workspace workspace;
    const auto run =
        run_workflow(runtime, runtime.resolve(heavy("auto", workers)), workspace.options());
    const auto resolved = nlohmann::json::parse(testing::read_file(run.folder / "workflow.json"));
    EXPECT_EQ(resolved.at("resources").at("shards"), 2) << "a millisecond of work for each";
    EXPECT_EQ(bits_of(run.folder), bits_with(runtime, heavy(2, 3)));
    EXPECT_THAT(
        result_of(run.folder).at("choices"),
        Contains(AllOf(StartsWith("shards: 2 (a step of about "),
                       EndsWith("batch normalization sees 32 rows at a time instead of 64)"))));
  }
  const Workspace workspace;
  const auto small =
      run_workflow(runtime, runtime.resolve(with_shards("auto", 2)), workspace.options());
  EXPECT_THAT(result_of(small.folder).at("choices"),
              Contains(StartsWith("shards: 1 (a step of about ")));
}

TEST(OtherSeed, GivesOtherBits) {
  const Runtime runtime;
  nlohmann::json other = moons(1);
  other["seed"] = 12;

  EXPECT_NE(bits_with(runtime, moons(1)), bits_with(runtime, other));
}

}  // namespace
}  // namespace treadle
