// Runs that an earlier build left behind, see tests/golden.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Bits are the same on one system only; other libtorch, BLAS and CPUs round in other places.
constexpr double kOfOneForward = 1e-4;
constexpr double kOfATraining = 1e-2;

std::vector<std::vector<std::string>> table_in(const std::string& text) {
  std::vector<std::vector<std::string>> table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    table.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');)
      table.back().push_back(cell);
  }
  return table;
}

class GoldenRuns : public CommandFixture {
 protected:
  GoldenRuns() {
    fs::create_directories(folder() / "tests");
    fs::create_directories(folder() / "examples");
    fs::copy(source() / "tests/golden", folder() / "tests/golden", fs::copy_options::recursive);
    fs::copy(source() / "examples/data", folder() / "examples/data", fs::copy_options::recursive);
  }

  static fs::path source() { return std::getenv("TREADLE_SOURCE"); }
  json result(const std::string& file) const { return json::parse(read(file)); }

  /// Expects the predictions of `run` to be those it made when it was new.
  void expect_predictions(const std::string& run) {
    const Finished done = this->run({"predict", run, "examples/data/iris.csv", "-o", "now.csv"});
    ASSERT_EQ(done.code, 0) << done.err;
    const auto before = table_in(read(kGolden + "predictions.csv"));
    const auto now = table_in(read("now.csv"));
    ASSERT_EQ(now.size(), before.size());
    EXPECT_EQ(now[0], before[0]);
    for (std::size_t row = 1; row < now.size(); ++row) {
      ASSERT_EQ(now[row].size(), before[row].size());
      EXPECT_EQ(now[row][0], before[row][0]);
      EXPECT_EQ(now[row][1], before[row][1]);
      for (std::size_t column = 2; column < now[row].size(); ++column) {
        EXPECT_NEAR(std::stod(now[row][column]), std::stod(before[row][column]), kOfOneForward)
            << "row " << row;
      }
    }
  }

  const std::string kGolden = "tests/golden/";
  const std::string kFinished = kGolden + "finished";
  const std::string kStopped = kGolden + "stopped";
};

TEST_F(GoldenRuns, PredictWhatTheyPredicted) {
  expect_predictions(kFinished);
}

TEST_F(GoldenRuns, AreExportedAndPredictThen) {
  ASSERT_EQ(run({"runs", "export", kFinished, "-o", "model.safetensors"}).code, 0);
  expect_predictions("model.safetensors");
}

TEST_F(GoldenRuns, EvaluateToTheShareOfRowsTheyPredictRight) {
  const Finished done = run({"evaluate", kFinished, "examples/data/iris.csv", "--json"});

  ASSERT_EQ(done.code, 0) << done.err;
  const auto predicted = table_in(read(kGolden + "predictions.csv"));
  const auto rows = table_in(read("examples/data/iris.csv"));
  ASSERT_EQ(predicted.size(), rows.size());
  double right = 0;
  for (std::size_t row = 1; row < rows.size(); ++row)
    right += predicted[row][1] == rows[row].back() ? 1 : 0;
  EXPECT_NEAR(done.json().at("metrics").at("accuracy").get<double>(), right / 150, 1e-6);
}

TEST_F(GoldenRuns, AreListedAndCompared) {
  const Finished list = run({"runs", "list", "--dir", "tests/golden"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("finished"), HasSubstr("stopped")));

  const Finished compared = run({"compare", kFinished, kStopped, "--json"});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("accuracy"));
}

TEST_F(GoldenRuns, PrintTheirResultWhenAFinishedOneIsResumed) {
  const Finished done = run({"resume", kFinished, "--allow-differences"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("accuracy"), HasSubstr("0.8")));
}

TEST_F(GoldenRuns, GoOnWhereTheyWereKilledAndEndLikeTheOneThatWasNot) {
  const Finished done = run({"resume", kStopped, "--allow-differences"});

  ASSERT_EQ(done.code, 0) << done.err;
  const json now = result(kStopped + "/result.json");
  const json before = result(kGolden + "stopped-result.json");
  for (const char* number : {"final_loss", "best_loss"}) {
    EXPECT_NEAR(now.at(number).get<double>(), before.at(number).get<double>(), kOfATraining)
        << number;
  }
  const auto history = table_in(read(kStopped + "/history.csv"));
  EXPECT_EQ(history.size(), 1 + 4 * 20U);  // three folds and the refit
  // What the killed process had trained was not trained again.
  const auto kept = table_in(read(source() / kStopped / "history.csv"));
  ASSERT_GT(kept.size(), 20U);
  for (std::size_t row = 0; row <= 20; ++row)
    EXPECT_EQ(history[row], kept[row]);
}

TEST_F(GoldenRuns, AreTrainedFurther) {
  const Finished done = run({"run", "--from", kFinished, "--set", "training.epochs=10",
                             "--allow-differences", "--json", "-o", "longer"});

  ASSERT_EQ(done.code, 0) << done.err;
  const fs::path longer = fs::directory_iterator(folder() / "longer")->path();
  EXPECT_EQ(result(longer / "result.json").at("total_epochs"), 10);
  const auto history = table_in(read(longer / "history.csv"));
  EXPECT_THAT(history.back()[1], "10");
}

}  // namespace
}  // namespace treadle
