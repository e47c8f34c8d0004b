// Gradient-boosted trees, trained as a user would. References: tables_reference.py.
#include <filesystem>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>

#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/host/run/exported_model.h>
#include <treadle/host/run/predictor.h>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::Workspace;
namespace fs = std::filesystem;

/// Presses Ctrl-C behind an epoch of any training.
class StopsBehind final : public RunObserver {
 public:
  explicit StopsBehind(std::int64_t epoch) : epoch_(epoch) {}
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void do_epoch_completed(const FitId&, const EpochSummary& summary) override {
    if (summary.epoch == epoch_)
      stop_.request_stop();
  }

  const std::int64_t epoch_;
  std::stop_source stop_;
};

class BoostedTrees : public ::testing::Test {
 protected:
  void SetUp() override {
    if (runtime_.schemas().find("model", "gradient_boosted_trees").schema == nullptr)
      GTEST_SKIP() << "plugins/trees was not built: it needs XGBoost (Debian: libxgboost-dev)";
  }

  RunOutcome run(const json& document, RunOptions options) const {
    return run_workflow(runtime_, runtime_.resolve(document), options);
  }
  RunOutcome run(const json& document) const { return run(document, options()); }

  /// In a folder of its own.
  RunOptions options() const {
    RunOptions options = workspace_.options();
    options.output = workspace_.folder() / std::to_string(++runs_);
    return options;
  }

  std::string error_of(const json& document) const {
    try {
      run(document);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  const Runtime runtime_;
  const Workspace workspace_;
  mutable int runs_ = 0;
};

json friedman(json model, std::int64_t rounds) {
  model["use"] = "gradient_boosted_trees";
  return {{"treadle", 1},
          {"seed", 3},
          {"data", {{"use", "friedman1"}, {"rows", 2500}, {"noise", 1.0}}},
          {"model", std::move(model)},
          {"training", {{"use", "boosting"}, {"epochs", rounds}}},
          {"validation", {{"use", "hold_out"}, {"rows", 500}}},
          {"metrics", {"rmse"}}};
}

/// Everything that draws is switched on.
json moons(int workers = 2) {
  return {{"treadle", 1},
          {"seed", 3},
          {"data", {{"use", "moons"}, {"rows", 2000}, {"noise", 0.3}}},
          {"model",
           {{"use", "gradient_boosted_trees"},
            {"max_depth", 3},
            {"learning_rate", 0.1},
            {"subsample", 0.5},
            {"colsample_bynode", 0.5}}},
          {"training", {{"use", "boosting"}, {"epochs", 60}}},
          {"validation", {{"use", "k_fold"}, {"folds", 4}}},
          {"metrics", {"accuracy"}},
          {"resources", {{"workers", workers}}}};
}

/// A value of `a` is missing where the class is "yes", and in no other row.
fs::path missing_values(const fs::path& folder) {
  const fs::path file = folder / "missing.csv";
  std::ofstream out(file);
  out << "a,b,y\n";
  for (int i = 0; i < 200; ++i) {
    const bool yes = i % 3 == 0;
    out << (yes ? "" : std::to_string(i % 17)) << "," << i % 5 << "," << (yes ? "yes" : "no")
        << "\n";
  }
  return file;
}

TEST_F(BoostedTrees, LearnFromMissingValuesAsTheyAre) {
  const fs::path file = missing_values(workspace_.folder());
  json document{
      {"treadle", 1},
      {"data", {{"use", "csv"}, {"path", file.string()}, {"target", "y"}, {"missing", "nan"}}},
      {"model", {{"use", "gradient_boosted_trees"}, {"max_depth", 2}}},
      {"training", {{"use", "boosting"}, {"epochs", 20}}},
      {"metrics", {"accuracy"}}};
  const RunOutcome outcome = run(document);
  EXPECT_EQ(outcome.result.at("accuracy"), 1);
  EXPECT_EQ(Predictor::load(runtime_, outcome.folder).evaluate_file(file).at("accuracy"), 1);

  document["model"] = "mlp";
  document.erase("training");
  const std::string refusal = error_of(document);
  EXPECT_THAT(refusal, HasSubstr("\"mlp\" takes none"));
  EXPECT_THAT(refusal, HasSubstr("impute"));
}

TEST_F(BoostedTrees, OfFriedmanBeatScikitLearns) {
  constexpr double kReference = 1.312;
  const RunOutcome outcome = run(friedman({{"max_depth", 4}, {"learning_rate", 0.1}}, 200));
  EXPECT_LT(outcome.result.at("rmse"), kReference);
}

TEST_F(BoostedTrees, OfMoonsBeatScikitLearns) {
  constexpr double kReference = 0.892;
  EXPECT_GT(run(moons()).result.at("accuracy"), kReference);
}

TEST_F(BoostedTrees, HaveTheSameBitsForAnyWorkersAndAfterAStop) {
  const std::string whole = bits_of(run(moons(1)).folder);
  EXPECT_EQ(bits_of(run(moons(3)).folder), whole);

  for (const std::int64_t epoch : {1, 25}) {
    StopsBehind impatient(epoch);
    RunOptions stopped = options();
    stopped.stop = impatient.token();
    stopped.observers = {&impatient};
    EXPECT_THROW(run(moons(), stopped), Interrupted);
    const fs::path folder = fs::directory_iterator(stopped.output)->path();
    EXPECT_EQ(bits_of(resume_run(runtime_, folder).folder), whole) << epoch;
  }
}

// Trees that fit the noise make the loss of the validation rows rise.
TEST_F(BoostedTrees, StopEarlyWithThoseOfTheBestRound) {
  json document = friedman({{"max_depth", 6}, {"learning_rate", 0.5}}, 300);
  document["training"]["early_stopping"] = {{"patience", "10ep"}};
  const RunOutcome early = run(document);
  const FitResult& training = early.result.training;
  ASSERT_LT(training.total_epochs, 300);
  EXPECT_EQ(training.total_epochs, training.best_epoch + 10);

  document = friedman({{"max_depth", 6}, {"learning_rate", 0.5}}, training.best_epoch);
  EXPECT_EQ(early.result.at("rmse"), run(document).result.at("rmse"));
}

TEST_F(BoostedTrees, ArePredictedFromTheirExport) {
  const RunOutcome whole = run(moons());
  const fs::path file = workspace_.folder() / "trees.safetensors";
  export_model(whole.folder, file);
  const at::Tensor rows = at::rand({50, 2}) * 3 - 1;
  EXPECT_TRUE(at::equal(Predictor::load(runtime_, whole.folder).predict(rows).values,
                        Predictor::load(runtime_, file).predict(rows).values));
}

class BoostedIris : public BoostedTrees {
 protected:
  json document(const json& loss) const {
    return {{"treadle", 1},
            {"seed", 3},
            {"data",
             {{"use", "csv"},
              {"path", (testing::source_folder() / "examples/data/iris.csv").string()},
              {"target", "species"}}},
            {"model", {{"use", "gradient_boosted_trees"}, {"max_depth", 1}}},
            {"loss", loss},
            {"training", {{"use", "boosting"}, {"epochs", 10}}},
            {"validation", {{"use", "hold_out"}, {"fraction", 0.3}, {"strategy", "stratified"}}},
            {"metrics", {"accuracy", {{"use", "recall"}, {"class", "virginica"}}}}};
  }
};

TEST_F(BoostedIris, IsClassified) {
  EXPECT_GT(run(document("cross_entropy")).result.at("accuracy"), 0.9);
}

// With a hundred times the weight, no row of the class is missed, at the cost of others.
TEST_F(BoostedIris, CountsByTheClassWeightsOfTheLoss) {
  const json weights{{"setosa", 1}, {"versicolor", 1}, {"virginica", 100}};
  const auto scores = [&](const json& loss) {
    json document = this->document(loss);
    document["training"]["epochs"] = 2;
    return run(document).result;
  };
  const RunResult plain = scores("cross_entropy");
  const RunResult weighted = scores({{"use", "cross_entropy"}, {"class_weights", weights}});
  EXPECT_LT(plain.at("recall.virginica"), 1.0);
  EXPECT_EQ(weighted.at("recall.virginica"), 1.0);
  EXPECT_LT(weighted.at("accuracy"), plain.at("accuracy"));
}

TEST_F(BoostedIris, RefusesLossesThatItCannotLearnBy) {
  EXPECT_THAT(error_of(document({{"use", "cross_entropy"}, {"label_smoothing", 0.1}})),
              HasSubstr("its gradients are none of XGBoost's; losses that it learns by are mse"));
  for (const char* const loss : {"l1", "smooth_l1", "gaussian_nll"}) {
    json document = friedman({}, 3);
    document["loss"] = loss;
    EXPECT_THAT(error_of(document), HasSubstr("mse for numbers")) << loss;
  }
}

TEST_F(BoostedIris, HasNoUseForWhatIsAboutParameters) {
  json document = this->document("cross_entropy");
  document["optimizer"] = "adamw";
  EXPECT_THAT(error_of(document), HasSubstr("has no gradients of parameters"));
}

}  // namespace
}  // namespace treadle
