// "batch_size": "auto" on a CPU; where memory runs out: tests/far_device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::read_file;
using testing::watched_moons;
using testing::watching_runtime;
using testing::Workspace;

json with_batch_size(const json& size) {
  json document = watched_moons(1);
  document["validation"] = {{"use", "hold_out"}, {"fraction", 0.25}};
  document["training"]["batch_size"] = size;
  document["training"]["epochs"] = 4;
  return document;
}

// 180 rows train: 179 in one batch, and one that batch normalization cannot be trained on.
TEST(DropLast, OfASingleRowDropsNothingElse) {
  const Runtime runtime = watching_runtime();
  const auto bits = [&](const json& batch_size, const json& drop_last) {
    const Workspace workspace;
    json document = with_batch_size(batch_size);
    document["model"]["norm"] = "batch";
    document["training"]["drop_last"] = drop_last;
    return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
  };

  EXPECT_THROW(bits(179, false), Error);
  EXPECT_EQ(bits(179, "single"), bits(179, true));
  EXPECT_EQ(bits(100, "single"), bits(100, false)) << "80 rows are no single one";
  EXPECT_EQ(bits(180, "single"), bits(180, false));
}

// 180 rows train. Two shards have one and two of three rows, and two each of four.
TEST(DropLast, OfASingleRowLeavesNoShardARowAlone) {
  const Runtime runtime = watching_runtime();
  const auto bits = [&](const json& batch_size, const json& drop_last) {
    const Workspace workspace;
    json document = with_batch_size(batch_size);
    document["model"]["norm"] = "batch";
    document["resources"]["shards"] = 2;
    document["training"]["drop_last"] = drop_last;
    return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
  };

  EXPECT_THROW(bits(59, false), Error);
  EXPECT_EQ(bits(59, "single"), bits(59, true));
  EXPECT_EQ(bits(44, "single"), bits(44, false));
}

// 180 rows train.
TEST(AutoBatchSize, IsALargestPowerOfTwoAndTrainsLikeThatNumber) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const auto found =
      run_workflow(runtime, runtime.resolve(with_batch_size("auto")), workspace.options()).folder;
  const auto given =
      run_workflow(runtime, runtime.resolve(with_batch_size(128)), workspace.options()).folder;

  EXPECT_EQ(json::parse(read_file(found / "workflow.json"))["training"]["batch_size"], 128);
  EXPECT_THAT(read_file(found / "result.json"), HasSubstr("batch size: 128 (all training rows"));
  EXPECT_EQ(bits_of(found), bits_of(given));
}

TEST(AutoBatchSize, IsNotLookedForAgainWhenARunGoesOn) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  // Looking takes steps, too: some of these are the training's.
  const Impatient impatient(runtime, 24);
  RunOptions options = workspace.options();
  options.stop = impatient.token();
  json document = with_batch_size("auto");
  document["training"]["checkpoint"] = {{"every", "1st"}};
  document["training"]["epochs"] = 40;
  document["training"].erase("early_stopping");
  ASSERT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  const auto run = std::filesystem::directory_iterator(options.output)->path();
  ASSERT_EQ(json::parse(read_file(run / "workflow.json"))["training"]["batch_size"], 128);

  resume_run(runtime, run, workspace.options());

  document["training"]["batch_size"] = 128;
  const Workspace beside;
  EXPECT_EQ(bits_of(run),
            bits_of(run_workflow(runtime, runtime.resolve(document), beside.options()).folder));
}

TEST(AutoBatchSize, IsShownByADryRun) {
  const Runtime runtime = watching_runtime();
  const DryRun tried = dry_run(runtime, runtime.resolve(with_batch_size("auto")));
  EXPECT_THAT(tried.data.at("choices").dump(), HasSubstr("batch size: 128"));
}

TEST(AutoBatchSize, FailsAsTheTrainingWould) {
  const Runtime runtime = watching_runtime();
  json document = with_batch_size("auto");
  document["training"]["clip"] = {{"norm", 1}};
  document["optimizer"] = {{"use", "adamw"}, {"groups", {{{"parameters", {"nothing"}}}}}};
  const Workspace workspace;
  EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), workspace.options()),
               DocumentError);
}

}  // namespace
}  // namespace treadle
