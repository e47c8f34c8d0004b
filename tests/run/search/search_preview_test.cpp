// What `check --dry-run` says of a search before any of it is trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "workspace.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json preview_of(const Json& search) {
  const Runtime runtime;
  Json document = testing::moons();
  document["validation"] = "hold_out";
  document["search"] = search;
  return dry_run(runtime, runtime.resolve(document)).search;
}

TEST(SearchPreview, IsOfTheFirstTrialsAndNotOfTheDocument) {
  const Json preview = preview_of({{"trials", 3},
                                   {"space", {{"model.hidden", {{"choice", {{2048, 2048}}}}}}},
                                   {"budget", {{"time", "1h"}, {"memory", "32MiB"}}}});

  // The weights of the larger layer alone; gradients and moments may be in memory that was freed.
  EXPECT_GE(preview.at("bytes_of_a_training"), 4 * 2048 * 2048);
  EXPECT_FALSE(preview.at("fits_into_memory"));
  EXPECT_EQ(preview.at("first_trials").size(), 3U);
  EXPECT_EQ(preview.at("first_trials").at("trial_2"), "hidden=[2048, 2048]");
  EXPECT_GT(preview.at("seconds_of_a_trial"), 0);
  EXPECT_EQ(preview.at("space").at("model.hidden"), R"({"choice":[[2048,2048]]})");
}

TEST(SearchPreview, CountsNoTrialsThatTheTunerHasNoPointsFor) {
  const Json preview = preview_of(
      {{"tuner", "grid"}, {"trials", 10}, {"space", {{"model.hidden", {{"choice", {{4}, {8}}}}}}}});

  EXPECT_EQ(preview.at("trials"), 2);
}

TEST(SearchPreview, NamesAnObjectiveThatNobodyComputes) {
  try {
    preview_of({{"trials", 3},
                {"objective", "f1_macroo"},
                {"space", {{"model.dropout", {{"uniform", {0, 0.5}}}}}}});
    FAIL() << "nobody computes it";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no number of the validation is called \"f1_macroo\""));
  }
}

}  // namespace
}  // namespace treadle
