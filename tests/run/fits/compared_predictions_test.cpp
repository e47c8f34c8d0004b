// Predictions of several runs for the rows that all of them hold out: against the runs' own numbers
// for those rows.
#include <treadle/host/run/compared_predictions.h>

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::moons;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// Other batches, so other last digits.
constexpr double kOtherBatches = 1e-6;

class PredictionsForComparison : public ::testing::Test {
 protected:
  fs::path run(const Json& document) {
    const RunOutcome outcome =
        run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
    results_.push_back(to_json(outcome.result));
    return outcome.folder;
  }

  ComparedPredictions predict(const std::vector<fs::path>& runs, const ComparedRows& rows = {}) {
    return predict_for_comparison(runtime_, runs, rows);
  }

  template <typename Failure>
  std::string refused(const std::vector<fs::path>& runs, const ComparedRows& rows = {}) {
    try {
      predict(runs, rows);
    } catch (const Failure& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  static double accuracy(const ComparedPredictions& predictions, std::size_t run) {
    const ComparedPredictions::Target& target = predictions.targets.front();
    return target.predicted[run].argmax(-1).eq(target.actual).to(at::kDouble).mean().item<double>();
  }

  /// Moons in a file, which does not change with the seed of the run.
  Json of_file(int seed, const Json& validation, int hidden = 8) {
    const fs::path file = workspace_.folder() / "points.csv";
    if (!fs::exists(file))
      write_points(file, 0, 120);
    Json document = moons();
    document["seed"] = seed;
    document["data"] = {{"use", "csv"}, {"path", file.string()}, {"target", "class"}};
    document["model"] = {{"use", "mlp"}, {"hidden", {hidden}}};
    document["validation"] = validation;
    return document;
  }

  /// `wrong_every`: how often a class is the other one; 0: never.
  static void write_points(const fs::path& file, int begin, int end, int wrong_every = 0) {
    std::ofstream text(file);
    text << "x,y,class\n";
    for (int i = begin; i < end; ++i) {
      const int scatter = i * 37 % 101;
      const bool is_wrong = wrong_every > 0 && i % wrong_every == 0;
      text << scatter << "," << i * 53 % 97 << ","
           << ((scatter + i * 53 % 97 > 95) != is_wrong ? "red" : "blue") << "\n";
    }
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
  std::vector<Json> results_;
};

TEST_F(PredictionsForComparison, AreThoseOfTheFoldsThatHoldTheRowsOut) {
  Json wider = moons();
  wider["model"] = {{"use", "mlp"}, {"hidden", {16}}};
  // Averaged and chosen weights, which a checkpoint has beside those of the last step.
  wider["training"]["ema"] = {{"decay", 0.9}};

  const ComparedPredictions predictions = predict({run(moons()), run(wider)});

  EXPECT_EQ(predictions.rows.size(), 240U);
  EXPECT_THAT(predictions.candidates, Each(240));
  for (std::size_t run = 0; run < 2; ++run) {
    double right = 0;
    for (const Json& fold : results_[run].at("fold_results")) {
      right += fold.at("validation").at("metrics").at("accuracy").get<double>() *
               fold.at("validation").at("sample_count").get<double>();
    }
    EXPECT_NEAR(accuracy(predictions, run), right / 240, kOtherBatches) << run;
  }
  EXPECT_FALSE(predictions.targets[0].predicted[0].equal(predictions.targets[0].predicted[1]));
}

TEST_F(PredictionsForComparison, OfOneSplitAreThoseOfTheRunsModel) {
  const Json split{{"use", "hold_out"}, {"fraction", 0.25}, {"seed", 3}, {"test_fraction", 0.25}};
  const std::vector<fs::path> runs{run(of_file(1, split)), run(of_file(2, split))};

  const ComparedPredictions validated = predict(runs);
  const ComparedPredictions tested = predict(runs, {ComparedRows::From::kTest});

  EXPECT_EQ(validated.rows.size(), 30U);
  EXPECT_EQ(tested.rows.size(), 30U);
  EXPECT_TRUE(validated.have_validated);
  EXPECT_FALSE(tested.have_validated);
  std::set<std::int64_t> both(validated.rows.begin(), validated.rows.end());
  both.insert(tested.rows.begin(), tested.rows.end());
  EXPECT_EQ(both.size(), 60U);
  for (std::size_t run = 0; run < 2; ++run) {
    const Json& result = results_[run];
    EXPECT_NEAR(accuracy(validated, run), result["validation"]["metrics"]["accuracy"], 1e-9);
    EXPECT_NEAR(accuracy(tested, run), result["test"]["metrics"]["accuracy"], 1e-9);
  }
  EXPECT_THAT(validated.describe(validated.rows.front()), HasSubstr("points.csv"));
}

TEST_F(PredictionsForComparison, OfNestedFoldsAreThoseOfTheOuterOnes) {
  const Json nested{{"use", "nested"},
                    {"outer", {{"use", "k_fold"}, {"folds", 2}}},
                    {"inner", {{"use", "k_fold"}, {"folds", 2}}}};
  const std::vector<fs::path> runs{run(of_file(1, nested)), run(of_file(1, nested, 4))};

  const ComparedPredictions predictions = predict(runs);

  EXPECT_EQ(predictions.rows.size(), 120U);
  EXPECT_FALSE(predictions.have_validated) << "the outer folds only test";
  for (std::size_t run = 0; run < 2; ++run)
    EXPECT_NEAR(accuracy(predictions, run), results_[run]["metrics"]["accuracy"], kOtherBatches);
}

TEST_F(PredictionsForComparison, LeaveOutWhatOneOfTheRunsWasTrainedOn) {
  const Json by_seed{{"use", "hold_out"}, {"fraction", 0.5}};
  const fs::path first = run(of_file(1, by_seed));
  const fs::path second = run(of_file(2, by_seed));
  const RowList of_first = predict({first, first}).rows;
  const RowList of_second = predict({second, second}).rows;

  const ComparedPredictions predictions = predict({first, second});

  std::vector<std::int64_t> held_out_by_both;
  std::set_intersection(of_first.begin(), of_first.end(), of_second.begin(), of_second.end(),
                        std::back_inserter(held_out_by_both));
  EXPECT_EQ(predictions.rows.numbers(), held_out_by_both);
  EXPECT_LT(predictions.rows.size(), 60U);
  EXPECT_THAT(predictions.candidates, Each(60));
}

TEST_F(PredictionsForComparison, OfAnotherFileAreThoseOfPredict) {
  const Json split{{"use", "hold_out"}, {"fraction", 0.25}};
  const std::vector<fs::path> runs{run(of_file(1, split)), run(of_file(2, split, 16))};
  const fs::path more = workspace_.folder() / "more.csv";
  write_points(more, 300, 350);

  const ComparedPredictions predictions = predict(runs, {ComparedRows::From::kValidation, more});

  EXPECT_EQ(predictions.rows.size(), 50U);
  for (std::size_t run = 0; run < 2; ++run) {
    const Json expected = to_json(Predictor::load(runtime_, runs[run]).evaluate_file(more));
    EXPECT_NEAR(accuracy(predictions, run), expected["metrics"]["accuracy"], 1e-9);
  }
}

TEST_F(PredictionsForComparison, OfASearchAreThoseOfItsEnsemble) {
  const Json split{{"use", "hold_out"}, {"fraction", 0.25}, {"seed", 3}};
  write_points(workspace_.folder() / "points.csv", 0, 120, /*wrong_every=*/4);
  Json search = of_file(1, split);
  search["metrics"] = {"accuracy", "log_loss"};
  search["search"] = {{"trials", 4},
                      {"objective", "log_loss"},
                      {"tuner", "grid"},
                      {"ensemble", {{"size", 8}}},
                      {"space", {{"model.hidden", {{"choice", {{4}, {8}, {12}, {16}}}}}}}};
  const fs::path tuned = run(search);
  ASSERT_TRUE(fs::exists(tuned / "ensemble.json"));
  const fs::path other = workspace_.folder() / "others.csv";
  write_points(other, 200, 260);

  const ComparedPredictions predictions = predict({tuned, run(of_file(2, split))}, {.file = other});

  const Json evaluated = to_json(Predictor::load(runtime_, tuned).evaluate_file(other));
  EXPECT_NEAR(accuracy(predictions, 0), evaluated.at("metrics").at("accuracy").get<double>(), 1e-9);
  const ComparedPredictions::Target& target = predictions.targets.front();
  const double log_loss =
      -target.predicted[0].log().gather(1, target.actual.unsqueeze(1)).mean().item<double>();
  EXPECT_NEAR(log_loss, evaluated.at("metrics").at("log_loss").get<double>(), kOtherBatches);
}

TEST_F(PredictionsForComparison, OfTheTrainingFileAreThoseOfTheRowsHeldOut) {
  const Json split{{"use", "hold_out"}, {"fraction", 0.25}, {"seed", 3}};
  const std::vector<fs::path> runs{run(of_file(1, split)), run(of_file(2, split))};

  const ComparedPredictions predictions =
      predict(runs, {ComparedRows::From::kValidation, workspace_.folder() / "points.csv"});

  EXPECT_EQ(predictions.rows.size(), 30U) << "the others were trained on";
}

TEST_F(PredictionsForComparison, AreRefusedWhereNoRowIsHeldOutByAll) {
  // One row each: of some seeds, two have other ones.
  std::vector<fs::path> runs;
  std::set<std::int64_t> held_out;
  for (int seed = 1; held_out.size() < 2; ++seed) {
    const Json one{{"use", "hold_out"}, {"rows", 1}, {"strategy", "random"}, {"seed", seed}};
    runs.push_back(run(of_file(1, one)));
    if (!held_out.insert(predict({runs.back(), runs.back()}).rows.front()).second)
      runs.pop_back();
  }

  EXPECT_THAT(refused<DataError>(runs), AllOf(HasSubstr("\"seed\""), HasSubstr("--data")));
}

TEST_F(PredictionsForComparison, AreRefusedOfOtherTargetsOtherDataAndOtherRuns) {
  const Json split{{"use", "hold_out"}, {"fraction", 0.25}, {"seed", 3}};
  const fs::path first = run(of_file(1, split));
  Json of_x = of_file(1, split);
  of_x["data"]["target"] = "x";
  of_x["data"]["categorical"] = {"class"};
  of_x["transforms"] = {{{"use", "one_hot"}}, {{"use", "standardize"}}};
  const fs::path regression = run(of_x);
  EXPECT_THAT(refused<DataError>({first, regression}),
              AllOf(HasSubstr("\"x\" (numbers)"), HasSubstr("\"class\" (classes)")));
  EXPECT_THAT(refused<DataError>({first, first}, {ComparedRows::From::kTest}),
              HasSubstr("test_fraction"));

  Json elsewhere = of_file(1, split);
  write_points(workspace_.folder() / "others.csv", 40, 160);
  elsewhere["data"]["path"] = (workspace_.folder() / "others.csv").string();
  EXPECT_THAT(refused<DataError>({first, run(elsewhere)}), HasSubstr("other data"));

  write_points(workspace_.folder() / "points.csv", 0, 119);
  EXPECT_THAT(refused<StorageError>({first, first}),
              AllOf(HasSubstr(first.string()), HasSubstr("has changed")));
  fs::remove(first / "result.json");
  EXPECT_THAT(refused<StorageError>({first, first}), HasSubstr("workflow-runner resume"));
}

TEST_F(PredictionsForComparison, NeedTheCheckpointsOfFolds) {
  const fs::path folds = run(moons());
  fs::remove_all(folds / "checkpoints" / "fold-2");

  EXPECT_THAT(refused<StorageError>({folds, folds}), HasSubstr("fold-2: has no checkpoint"));
}

}  // namespace
}  // namespace treadle
