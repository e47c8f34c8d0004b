#include <treadle/host/compare/run_measures.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle::compare {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class Measures : public testing::Test {
 protected:
  Measures() {
    std::string pattern = (fs::temp_directory_path() / "treadle-measures-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Measures() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  /// A run whose history has these lines.
  RunRecord given(const std::string& name, const Json& result, const std::string& history) {
    RunRecord run;
    run.folder = folder_ / name;
    run.document = {{"seed", 7}, {"validation", {{"use", "hold_out"}}}};
    if (!result.is_null())
      run.result = run_result_from(result, "result.json");
    fs::create_directories(run.folder);
    std::ofstream(run.folder / "history.csv")
        << "fit,epoch,epochs,step,learning_rate,train_loss,val_loss,accuracy,log.norm,best,"
           "seconds\n"
        << history;
    return run;
  }

  static Json result() {
    return {{"model_path", "model.safetensors"},
            {"training_time_seconds", 8.0},
            {"rows", {{"training", 80}, {"validation_hash", "v"}, {"test_hash", "t"}}},
            {"validation",
             {{"loss", 0.5},
              {"sample_count", 20},
              {"metric_list", {{{"name", "accuracy"}, {"better", "higher"}}}},
              {"metrics", {{"accuracy", 0.75}}}}},
            {"environment", {{"data_hash", "d"}, {"data_rows", 120}}}};
  }

  fs::path folder_;
};

constexpr const char* kThreeEpochs =
    "final,1,3,10,0.1,0.9,0.8,0.5,1,1,2\n"
    "final,2,3,20,0.1,0.8,0.4,0.9,1,1,2\n"
    "final,3,3,30,0.1,0.7,0.6,0.7,1,0,2\n";

TEST_F(Measures, AreThoseOfTheResult) {
  const MeasuredRun run = measure_run(given("a", result(), kThreeEpochs));

  ASSERT_EQ(run.numbers.size(), 2U);
  EXPECT_EQ(run.numbers[0].value, 0.5);
  EXPECT_EQ(run.numbers[1].value, 0.75);
  EXPECT_EQ(run.seed, 7U);
  ASSERT_EQ(run.trainings.size(), 1U);
  EXPECT_EQ(run.trainings[0].rows, "d v");
  EXPECT_EQ(run.trainings[0].evaluated_rows, 20);
  EXPECT_EQ(run.trainings[0].training, 80);
  EXPECT_EQ(run.trainings[0].updates, 30);
  EXPECT_EQ(run.trainings[0].seconds, 8);
  EXPECT_THAT(run.trainings[0].values,
              UnorderedElementsAre(Pair("loss", 0.5), Pair("accuracy", 0.75)));
}

TEST_F(Measures, OfTestRowsAreThoseOfTheTest) {
  Json tested = result();
  tested["test"] = {{"loss", 0.25}, {"sample_count", 10}, {"metrics", {{"accuracy", 0.5}}}};

  const MeasuredRun run = measure_run(given("a", tested, kThreeEpochs), EvaluatedOn::kTest);

  EXPECT_EQ(run.numbers[0].value, 0.25);
  EXPECT_EQ(run.numbers[1].value, 0.5);
  EXPECT_EQ(run.trainings[0].rows, "d t");
  EXPECT_THAT(measure_run(given("b", result(), ""), EvaluatedOn::kTest).trainings, IsEmpty());
}

TEST_F(Measures, OnOneSourceAreOnTheSameData) {
  const auto read = [&](const char* data, const char* source) {
    Json one = result();
    one["environment"]["data_hash"] = data;
    one["environment"]["source_hash"] = source;
    return measure_run(given(data, one, ""));
  };
  std::vector<MeasuredRun> runs{read("narrow", "file"), read("wide", "file"), read("x", "other")};

  join_sources(runs);

  EXPECT_EQ(runs[1].data, "narrow");
  EXPECT_EQ(runs[1].trainings[0].rows, runs[0].trainings[0].rows);
  EXPECT_EQ(runs[2].data, "x");
  EXPECT_NE(runs[2].trainings[0].rows, runs[0].trainings[0].rows);
}

TEST_F(Measures, OfFoldsAreThoseOfEachFold) {
  Json folds = result();
  folds["mean_loss"] = 0.45;
  for (const char* name : {"fold-1", "fold-2"}) {
    Json fold = result();
    fold["name"] = name;
    fold["rows"]["validation_hash"] = name;
    folds["fold_results"].push_back(fold);
  }

  const MeasuredRun run = measure_run(given("a", folds,
                                            "fold-1,1,3,10,0.1,0.9,0.8,0.5,1,1,2\n"
                                            "fold-2,1,3,12,0.1,0.9,0.8,0.5,1,1,2\n"
                                            "final,1,3,15,0.1,0.9,,,1,0,2\n"));

  ASSERT_EQ(run.trainings.size(), 2U) << "the model of all rows is measured by nothing";
  EXPECT_EQ(run.numbers[0].value, 0.45);
  EXPECT_EQ(run.trainings[1].fit, "fold-2");
  EXPECT_EQ(run.trainings[1].rows, "d fold-2");
  EXPECT_EQ(run.trainings[1].updates, 12);
}

TEST_F(Measures, OfAnUnfinishedRunAreNone) {
  const MeasuredRun run = measure_run(given("a", nullptr, kThreeEpochs));

  EXPECT_THAT(run.numbers, IsEmpty());
  EXPECT_THAT(run.trainings, IsEmpty());
}

/// Runs of an earlier version: their document, their seed and their data decide the rows.
TEST_F(Measures, KnowTheRowsOfRunsThatDidNotRecordThem) {
  Json old = result();
  old.erase("rows");
  const RunRecord first = given("a", old, kThreeEpochs);
  RunRecord second = given("b", old, kThreeEpochs);
  const std::string rows = measure_run(first).trainings[0].rows;
  EXPECT_EQ(measure_run(second).trainings[0].rows, rows);
  EXPECT_EQ(measure_run(first).trainings[0].training, 100) << "of 120 rows, 20 validate";

  second.document["seed"] = 8;
  EXPECT_NE(measure_run(second).trainings[0].rows, rows);

  RunRecord third = given("c", old, kThreeEpochs);
  third.document["validation"]["seed"] = 1;
  const std::string fixed = measure_run(third).trainings[0].rows;
  third.document["seed"] = 8;
  EXPECT_EQ(measure_run(third).trainings[0].rows, fixed);
}

TEST_F(Measures, WithinABudgetAreTheLastAndTheBestUntilThen) {
  const RunRecord run = given("a", result(), kThreeEpochs);
  const auto value = [&](const Budget& budget, const std::string& name) {
    const MeasuredRun measured = measure_run(run, EvaluatedOn::kValidation, budget);
    for (const MetricValue& number : measured.numbers) {
      if (number.name == name)
        return number.value;
    }
    ADD_FAILURE() << "there is no " << name;
    return Number();
  };
  const Budget all{Budget::Unit::kUpdates, 30};
  EXPECT_EQ(value(all, "loss"), 0.6);
  EXPECT_EQ(value(all, "best loss"), 0.4);
  EXPECT_EQ(value(all, "accuracy"), 0.7);
  EXPECT_EQ(value(all, "best accuracy"), 0.9);
  const Budget some{Budget::Unit::kUpdates, 29};
  EXPECT_EQ(value(some, "loss"), 0.4);
  const Budget seconds{Budget::Unit::kSeconds, 3.5};
  EXPECT_EQ(value(seconds, "loss"), 0.8) << "seconds of epochs are added up";
  const Budget nothing{Budget::Unit::kSeconds, 1};
  EXPECT_FALSE(value(nothing, "loss").is_known());
  EXPECT_EQ(measure_run(run, EvaluatedOn::kValidation, some).trainings[0].updates, 20);
}

TEST_F(Measures, ShareTheLargestBudgetThatAllReach) {
  const std::vector<RunRecord> runs{given("a", result(), kThreeEpochs),
                                    given("b", result(), "final,1,3,25,0.1,0.9,0.8,0.5,1,1,9\n"),
                                    given("c", nullptr, "final,1,3,5,0.1,0.9,0.8,0.5,1,1,1\n")};

  EXPECT_EQ(shared_budget(runs, Budget::Unit::kUpdates).amount, 25);
  EXPECT_EQ(shared_budget(runs, Budget::Unit::kSeconds).amount, 6);
  EXPECT_THROW(shared_budget({given("d", result(), "")}, Budget::Unit::kUpdates), UsageError);
  EXPECT_THROW(shared_budget({runs[2]}, Budget::Unit::kUpdates), UsageError);
}

}  // namespace
}  // namespace treadle::compare
