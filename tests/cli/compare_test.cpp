// `compare` with models: which rows runs disagree on, and what cannot be compared.
#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Compare : public CommandFixture {
 protected:
  Compare() { given_points(); }

  /// The folder of a new run of points.json.
  std::string trained(int seed, const json& more = json::object(), int epochs = 2) {
    json document{{"seed", seed},
                  {"validation", {{"use", "hold_out"}, {"fraction", 0.4}, {"seed", 1}}}};
    document.update(more);
    given_document(epochs, document);
    const Finished done = run({"run", "points.json", "--json"});
    EXPECT_EQ(done.code, 0) << done.err;
    return fs::path(done.json().at("folder").get<std::string>()).lexically_relative(folder());
  }

  Finished compare(std::vector<std::string> words) {
    words.insert(words.begin(), "compare");
    return run(words);
  }

  static json with_epochs_and_rate(double rate) {
    return {{"optimizer", {{"use", "adamw"}, {"learning_rate", rate}}}};
  }
};

TEST_F(Compare, ShowsWhichRowsRunsDisagreeOn) {
  const std::string good = trained(1, json::object(), 8);
  const std::string poor = trained(2, with_epochs_and_rate(0.0001), 1);

  const Finished done = compare({good, poor, "--disagreements", "--rows", "rows.csv", "--json"});

  ASSERT_EQ(done.code, 0) << done.err;
  const json rows = done.json().at("rows");
  EXPECT_EQ(rows.at("rows"), 24);
  EXPECT_EQ(rows.at("held_out"), json({24, 24}));
  const json& target = rows.at("targets").at("class");
  const json& pair = target.at("pairs").at(0);
  const auto accuracy = [&](int run) { return target.at("accuracy").at(run).get<double>(); };
  EXPECT_NEAR(pair.at("coverage").get<double>() + pair.at("overlap").get<double>(),
              accuracy(0) + accuracy(1), 1e-12);
  EXPECT_EQ(done.json().at("runs")[0].at("metrics").at("accuracy"), accuracy(0));
  // The file has all of them, with the same counts.
  std::istringstream file(read("rows.csv"));
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "row,class,disagree," + good + "," + good + "/p," + good + "/right," + poor +
                      "," + poor + "/p," + poor + "/right");
  int lines = 0;
  int disagree = 0;
  while (std::getline(file, line)) {
    ++lines;
    disagree += line.find(",1,") != std::string::npos &&
                        line.find(",1,") == line.find(',', line.find(',') + 1)
                    ? 1
                    : 0;
  }
  EXPECT_EQ(lines, 24);
  EXPECT_EQ(disagree, target.at("disagreements"));
}

TEST_F(Compare, PrintsRowsWithTheirPlaces) {
  const std::string good = trained(1, json::object(), 8);
  const std::string poor = trained(2, with_epochs_and_rate(0.0001), 1);

  const std::string text = compare({good, poor, "--disagreements"}).out;

  EXPECT_THAT(text, AllOf(HasSubstr("Rows: 24 validation rows"), HasSubstr("[1] " + good),
                          HasSubstr("coverage"), HasSubstr("points.csv:"),
                          HasSubstr("McNemar's exact test")));
  EXPECT_THAT(compare({poor, poor, "--min-coverage", "1.0"}).out,
              HasSubstr("No pair covers 1.0000 of the rows."));
}

TEST_F(Compare, FindsTheRowsWithTheLargestDifferenceBetweenNumbers) {
  const json of_y{
      {"data",
       {{"use", "csv"}, {"path", "points.csv"}, {"target", "y"}, {"categorical", {"class"}}}},
      {"transforms", {{{"use", "one_hot"}}, {{"use", "standardize"}}}}};
  json slow = of_y;
  slow.update(with_epochs_and_rate(0.0001));
  const std::string first = trained(1, of_y);
  const std::string second = trained(1, slow);

  const Finished done = compare({first, second, "--rows", "rows.csv"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("correlation"), HasSubstr("spread"),
                              HasSubstr("all rows are in rows.csv")));
  EXPECT_THAT(read("rows.csv"), StartsWith("row,y," + first + "," + second + ",spread\n"));
}

TEST_F(Compare, WritesRowsToTheStandardOutputAlone) {
  const std::string first = trained(1);
  const std::string second = trained(2);

  EXPECT_THAT(compare({first, second, "--rows", "-"}).out,
              AllOf(StartsWith("row,class,"), Not(HasSubstr("Comparable"))));
}

TEST_F(Compare, ComparesOnAnotherFile) {
  const std::string first = trained(1);
  const std::string second = trained(2);
  write("more.csv", "x,y,class\n-15,3,blue\n25,4,red\n1,5,red\n");

  const json rows = compare({first, second, "--data", "more.csv", "--json"}).json().at("rows");

  EXPECT_EQ(rows.at("rows"), 3);
}

TEST_F(Compare, ComparesAfterTheSameNumberOfUpdates) {
  const std::string first = trained(1, json::object(), 4);
  const std::string second =
      trained(1, {{"training", {{"use", "standard"}, {"epochs", 4}, {"batch_size", 12}}}});

  const json compared = compare({first, second, "--at", "updates", "--json"}).json();

  EXPECT_EQ(compared.at("at"), json({{"updates", 12.0}}));
  EXPECT_EQ(compared.at("runs")[0].at("metrics").at("updates"), 9) << "epochs of 9 updates";
  EXPECT_EQ(compared.at("runs")[1].at("metrics").at("updates"), 12);
  EXPECT_TRUE(compared.at("runs")[0].at("metrics").at("best loss").is_number());
  const std::string text = compare({first, second, "--at", "time"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("After "), HasSubstr("the longest that all reach")));
}

TEST_F(Compare, ShowsTheValuesThatSearchesHaveChosen) {
  const auto tuned = [&](int seed) {
    return trained(seed,
                   {{"search",
                     {{"trials", 2},
                      {"tuner", "random"},
                      {"space", {{"optimizer.learning_rate", {{"uniform", {0.01, 0.1}}}}}}}}});
  };
  const std::vector<std::string> runs{tuned(1), tuned(2), trained(1)};

  const json compared = compare({runs[0], runs[1], runs[2], "--json"}).json();

  for (std::size_t i = 0; i < 2; ++i) {
    const json best = json::parse(read(runs[i] + "/best.json"));
    EXPECT_EQ(compared.at("runs")[i].at("settings").at("optimizer.learning_rate"),
              best.at("optimizer").at("learning_rate"));
  }
  EXPECT_EQ(compared.at("runs")[2].at("settings").at("search.tuner.use"), json());
  // Two seeds of one search are a method, whatever they have chosen.
  EXPECT_EQ(compared.at("methods").size(), 2);
  EXPECT_EQ(compared.at("methods")[0].at("runs").size(), 2);
}

TEST_F(Compare, ComparesByTestRows) {
  const json split{{"validation",
                    {{"use", "hold_out"}, {"fraction", 0.2}, {"test_fraction", 0.2}, {"seed", 1}}}};
  const std::string first = trained(1, split);
  const std::string second = trained(2, split);

  const json compared =
      compare({first, second, "--on", "test", "--disagreements", "--json"}).json();

  const json result = json::parse(read(first + "/result.json"));
  EXPECT_EQ(compared.at("runs")[0].at("metrics").at("accuracy"),
            result.at("test").at("metrics").at("accuracy"));
  EXPECT_EQ(compared.at("rows").at("rows"), 12);
}

TEST_F(Compare, SaysWhatCannotBeCompared) {
  const std::string first = trained(1);
  const auto refused = [&](const std::vector<std::string>& words, int code) {
    const Finished done = compare(words);
    EXPECT_EQ(done.code, code) << done.out;
    return done.err;
  };

  EXPECT_THAT(refused({first, "--disagreements"}, 2), HasSubstr("two runs"));
  EXPECT_THAT(refused({first, first, "--on", "tests"}, 2), HasSubstr("did you mean \"test\"?"));
  EXPECT_THAT(refused({first, first, "--on", "test"}, 2),
              AllOf(HasSubstr(first), HasSubstr("test_fraction")));
  EXPECT_THAT(refused({first, first, "--at", "epochs"}, 2), HasSubstr("updates, time"));
  EXPECT_THAT(refused({first, first, "--at", "time", "--rows", "rows.csv"}, 2), HasSubstr("--at"));
  EXPECT_THAT(refused({first, first, "--rows", "rows.csv", "--csv"}, 2), HasSubstr("--csv"));
  EXPECT_THAT(refused({first, first, "--min-coverage", "2"}, 2), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused({first, "points.csv", "--disagreements"}, 7), HasSubstr("points.csv"));

  const std::string other = trained(
      1, {{"data",
           {{"use", "csv"}, {"path", "points.csv"}, {"target", "y"}, {"categorical", {"class"}}}},
          {"transforms", {{{"use", "one_hot"}}, {{"use", "standardize"}}}}});
  EXPECT_THAT(refused({first, other}, 2),
              AllOf(HasSubstr("\"y\" (regression)"), HasSubstr("\"class\" (classification)")));

  fs::remove(folder() / first / "result.json");
  EXPECT_THAT(refused({first, first, "--disagreements"}, 7),
              AllOf(HasSubstr(first), HasSubstr("workflow-runner resume")));
}

TEST_F(Compare, RefusesRowsThatTheModelsWereTrainedOn) {
  const json all_rows{{"validation", {{"use", "k_fold"}, {"folds", 2}}}};
  const std::string first = trained(1, all_rows);
  const std::string second = trained(2, all_rows);
  // Of folds, each row is predicted by the model that held it out.
  EXPECT_EQ(compare({first, second, "--disagreements", "--json"}).json()["rows"]["rows"], 60);

  const Finished test = compare({first, second, "--disagreements", "--on", "test"});

  EXPECT_EQ(test.code, 2);
  fs::remove_all(folder() / first / "checkpoints");
  const Finished gone = compare({first, second, "--disagreements"});
  EXPECT_EQ(gone.code, 7);
  EXPECT_THAT(gone.err, AllOf(HasSubstr("checkpoints/fold-1"), HasSubstr("train the run again")));
}

}  // namespace
}  // namespace treadle
