// Losses that are no sums over rows, as whole runs: batches stay whole, validation takes all rows
// at once.
#include <string>

#include <gmock/gmock.h>

#include <treadle/base/problem.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;

json correlated(int evaluation_batch_size) {
  return {{"treadle", 1},
          {"seed", 5},
          {"precision", "float64"},
          {"data", {{"use", "friedman1"}, {"rows", 120}}},
          {"model", "linear"},
          {"loss", "correlation"},
          {"optimizer", {{"use", "adam"}, {"learning_rate", 0.05}}},
          {"training",
           {{"epochs", 5}, {"batch_size", 24}, {"evaluation_batch_size", evaluation_batch_size}}},
          {"resources", {{"shards", "auto"}}}};
}

class WholeLosses : public ::testing::Test {
 protected:
  RunOutcome run(const json& document) const {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
  }

 private:
  const Runtime runtime_ = testing::watching_runtime();
  const testing::Workspace workspace_;
};

// The mean over batches of five rows would be another number.
TEST_F(WholeLosses, ValidationComputesThemOnceOverAllRowsWhateverItsBatches) {
  const json at_once = to_json(run(correlated(1024)).result).at("validation");
  const json in_fives = to_json(run(correlated(5)).result).at("validation");

  EXPECT_EQ(at_once.at("sample_count"), 24);
  EXPECT_LT(at_once.at("loss").get<double>(), 0) << "it learnt something";
  EXPECT_GT(at_once.at("loss").get<double>(), -1);
  EXPECT_NEAR(in_fives.at("loss").get<double>(), at_once.at("loss").get<double>(), 1e-12);
}

TEST_F(WholeLosses, AutomaticShardsAreOne) {
  const RunOutcome outcome = run(correlated(1024));

  EXPECT_THAT(to_json(outcome.result).at("choices"),
              ::testing::Contains(::testing::StartsWith("shards: 1 (the loss ")));
  EXPECT_EQ(json::parse(testing::read_file(outcome.folder / "workflow.json"))
                .at("resources")
                .at("shards"),
            1);
}

TEST_F(WholeLosses, OfOneRowHaveNoGradientAndSaySo) {
  json document = correlated(1024);
  document["training"]["batch_size"] = 1;
  try {
    run(document);
    FAIL() << "trained on batches of one row";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(),
                ::testing::AllOf(::testing::HasSubstr("/loss"), ::testing::HasSubstr("of one row"),
                                 ::testing::HasSubstr("training.batch_size")));
  }

  const auto says_so = [&](int batch_size) {
    document["training"]["batch_size"] = batch_size;
    return testing::read_file(run(document).folder / "events.jsonl").find("batch of each epoch") !=
           std::string::npos;
  };
  EXPECT_TRUE(says_so(19)) << "96 training rows";
  EXPECT_FALSE(says_so(24));
  document["training"]["drop_last"] = "single";
  EXPECT_FALSE(says_so(19)) << "the remedy";
}

}  // namespace
}  // namespace treadle
