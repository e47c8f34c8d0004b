// Numbers that rows or weights leave undefined choose nothing, enter no mean, and give a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "watched_runs.h"

namespace treadle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::history_of;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

enum class Fold { kFull, kOfOneClass, kWithoutWeight, kOfTheOther };

/// Rows of one group a fold, whose rows are all of one class, or all of weight 0, as `folds` says.
void write_rows(const fs::path& file, const std::vector<Fold>& folds, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise;
  std::ofstream rows(file);
  rows << "a,b,group,weight,y\n";
  for (std::size_t fold = 0; fold < folds.size(); ++fold) {
    for (int row = 0; row < 14; ++row) {
      const bool yes =
          folds[fold] == Fold::kOfOneClass || (folds[fold] != Fold::kOfTheOther && row % 2 == 0);
      rows << noise(random) + (yes ? 1 : 0) << "," << noise(random) << "," << fold << ","
           << (folds[fold] == Fold::kWithoutWeight ? 0 : 1 + row % 3) << "," << (yes ? "yes" : "no")
           << "\n";
    }
  }
}

Json folds_by_group(const fs::path& file, const Json& callbacks) {
  return {{"treadle", 1},
          {"name", "undefined"},
          {"seed", 3},
          {"data",
           {{"use", "csv"},
            {"path", file.string()},
            {"group", "group"},
            {"weight", "weight"},
            {"target", "y"}}},
          {"validation", {{"use", "leave_one_group_out"}}},
          {"model", {{"use", "mlp"}, {"hidden", {4}}}},
          {"metrics", {"auc", "accuracy"}},
          {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.02}}},
          {"training",
           {{"use", "standard"}, {"epochs", 4}, {"batch_size", 8}, {"callbacks", callbacks}}}};
}

/// The numbers that a fold's rows leave undefined.
std::set<std::string> undefined_in(Fold fold) {
  if (fold == Fold::kWithoutWeight)
    return {"loss", "auc", "accuracy"};
  return fold == Fold::kOfOneClass ? std::set<std::string>{"auc"} : std::set<std::string>();
}

Json number_in(const Json& part, const std::string& name) {
  return name == "loss" ? part.at("loss") : part.at("metrics").at(name);
}

class UndefinedNumbers : public ::testing::Test {
 protected:
  RunOutcome run(const Json& document) const {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
};

TEST_F(UndefinedNumbers, AreInNoMeanAndChooseNoEpoch) {
  std::mt19937 random(1);
  const fs::path file = workspace_.folder() / "rows.csv";
  for (unsigned draw = 0; draw < 6; ++draw) {
    std::vector<Fold> folds(4, Fold::kFull);
    for (std::size_t i = 1; i < folds.size(); ++i)
      folds[i] = static_cast<Fold>(random() % 3);
    const std::string monitor = std::vector<std::string>{"auc", "val_loss"}[random() % 2];
    const Json callback =
        random() % 2 == 0
            ? Json{{"use", "restore_best_weights"}, {"monitor", monitor}}
            : Json{{"use", "early_stopping"}, {"monitor", monitor}, {"patience", "2ep"}};
    write_rows(file, folds, draw);

    const Json result = to_json(run(folds_by_group(file, Json::array({callback}))).result);

    double epochs = 0;
    std::map<std::string, std::vector<double>> defined;
    for (std::size_t i = 0; i < folds.size(); ++i) {
      const Json& fold = result.at("fold_results")[i];
      const Json& validation = fold.at("validation");
      const std::set<std::string> expected = undefined_in(folds[i]);
      for (const std::string name : {"loss", "auc", "accuracy"}) {
        const bool is_undefined = expected.count(name) > 0;
        EXPECT_EQ(number_in(validation, name).is_null(), is_undefined) << draw << name << i;
        EXPECT_EQ(validation.value("undefined", Json::object()).contains(name), is_undefined)
            << draw << name << i;
        if (!is_undefined)
          defined[name].push_back(number_in(validation, name).get<double>());
      }
      const bool is_chosen = expected.count(monitor == "val_loss" ? "loss" : monitor) == 0;
      EXPECT_EQ(fold.at("weights").at("chosen"), is_chosen ? "best" : "last") << draw << " " << i;
      if (!is_chosen) {
        EXPECT_EQ(fold.at("total_epochs"), 4) << "an undefined value ended it";
      }
      epochs += fold.at(is_chosen ? "best_epoch" : "total_epochs").get<double>();
    }
    EXPECT_EQ(result.at("total_epochs"), std::llround(epochs / 4)) << draw;
    for (const auto& [name, values] : defined) {
      double sum = 0;
      for (const double value : values)
        sum += value;
      const Json& mean =
          name == "loss" ? result.at("mean_loss") : result.at("mean_metrics").at(name);
      EXPECT_DOUBLE_EQ(mean.get<double>(), sum / static_cast<double>(values.size())) << name;
      EXPECT_EQ(result.value("undefined", Json::object()).contains(name), values.size() < 4);
    }
  }
}

TEST_F(UndefinedNumbers, AreNotedBeforeTheFirstStepByTheirReason) {
  const fs::path file = workspace_.folder() / "rows.csv";
  write_rows(file, {Fold::kFull, Fold::kOfOneClass, Fold::kWithoutWeight}, 0);

  const RunOutcome outcome = run(folds_by_group(
      file, {{{"use", "restore_best_weights"}, {"monitor", "auc"}},
             {{"use", "reduce_on_plateau"}, {"monitor", "val_loss"}, {"patience", "1ep"}}}));

  const std::string events = testing::read_file(outcome.folder / "events.jsonl");
  EXPECT_THAT(events, AllOf(HasSubstr("group-1: \\\"auc\\\" has no value on the validation rows "
                                      "(all rows are of class \\\"yes\\\")"),
                            HasSubstr("group-2: \\\"val_loss\\\" has no value on the validation "
                                      "rows (no row has a weight above 0)")));
  std::istringstream lines(events);
  bool is_noted = false;
  for (std::string line; std::getline(lines, line);) {
    is_noted = is_noted || line.find("group-1: \\\"auc\\\" has no value") != std::string::npos;
    const Json event = Json::parse(line);
    if (event.at("event") == "epoch_completed" && event.at("fit") == "group-1") {
      EXPECT_TRUE(is_noted) << line;
    }
  }
  EXPECT_EQ(events.find("learning rate times", events.find("group-2")), std::string::npos)
      << "an undefined number lowered the rate";
  // NA: pandas and R read it as missing.
  EXPECT_THAT(history_of(outcome.folder), HasSubstr(",NA,NA,NA,"));
}

TEST_F(UndefinedNumbers, PruneNothingAndFailATrialByTheirReason) {
  const fs::path file = workspace_.folder() / "rows.csv";
  write_rows(file, {Fold::kFull, Fold::kOfOneClass, Fold::kFull}, 0);
  Json document = folds_by_group(file, Json::array());
  document["search"] = {{"space", {{"optimizer.learning_rate", {{"uniform", {0.01, 0.02}}}}}},
                        {"objective", "auc"},
                        {"trials", 4},
                        {"pruner", {{"use", "median"}, {"n_startup_trials", 0}}}};

  const Json search = to_json(*run(document).result.search);
  for (const Json& trial : search.at("trials")) {
    const bool has_value = trial.at("state") == "complete" || trial.at("state") == "pruned";
    EXPECT_TRUE(has_value) << trial;
    for (const Json& one : trial.at("intermediate"))
      EXPECT_TRUE(one.at("value").is_number()) << trial;
  }

  write_rows(file, {Fold::kOfOneClass, Fold::kOfTheOther}, 0);
  try {
    run(document);
    ADD_FAILURE() << "a search by what no trial has came to an end";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("auc is undefined: all rows are of class \"yes\""));
  }
}

/// One fold and a model of all rows: the reported loss is the fold's, not the training's.
TEST_F(UndefinedNumbers, OfTheModelOfAllRowsAreNotThoseOfItsOnlyFold) {
  const fs::path file = workspace_.folder() / "rows.csv";
  write_rows(file, {Fold::kFull, Fold::kFull, Fold::kFull}, 0);
  Json document = folds_by_group(file, Json::array());
  document["validation"] = {{"use", "monte_carlo"}, {"splits", 1}};

  const Json result = to_json(run(document).result);

  ASSERT_EQ(result.at("fold_results").size(), 1U);
  const Json& validation = result.at("fold_results")[0].at("validation");
  EXPECT_EQ(result.at("mean_loss"), validation.at("loss"));
  EXPECT_EQ(result.at("metrics"), validation.at("metrics"));

  document["validation"]["splits"] = 2;
  document["validation"]["refit"] = false;
  const Json without = to_json(run(document).result);
  EXPECT_EQ(without.at("model_path"), "");
  for (const char* key : {"weights", "final_loss", "best_epoch", "rows", "validation"})
    EXPECT_FALSE(without.contains(key)) << key << " is of the first fold";
}

}  // namespace
}  // namespace treadle
