// `runs list` and `compare` on the folders of runs, without training anything.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RunsCommands : public CommandFixture {
 protected:
  /// A run as a folder shows it: `result` null while it is not finished.
  void given_run(const std::string& folder, double started, json document, const json& result) {
    fs::create_directories(this->folder() / "runs" / folder);
    document["treadle"] = 1;
    document["name"] = folder.substr(0, folder.find('-'));
    write("runs/" + folder + "/workflow.json", document.dump());
    write("runs/" + folder + "/events.jsonl",
          json{{"time", started}, {"event", "run_started"}}.dump() + "\n" +
              json{{"time", started + 8}, {"event", "epoch_completed"}}.dump() + "\n");
    write("runs/" + folder + "/history.csv",
          "fit,epoch,epochs,step,learning_rate,train_loss,val_loss,r2,best,seconds\n"
          "final,1,40,10,0.1,0.9,0.8,0.125,1,0.5\n"
          "final,2,40,20,0.1,0.8,0.7,0.25,1,0.5\n"
          "final,3,40");
    if (!result.is_null())
      write("runs/" + folder + "/result.json", result.dump());
  }

  static json result(double r2, double rmse, int epochs) {
    return {{"final_loss", 9.0},
            {"model_path", "model.safetensors"},
            {"validation",
             {{"loss", rmse * rmse},
              {"metrics", {{"r2", r2}, {"rmse", rmse}}},
              {"metric_list",
               {{{"name", "rmse"}, {"better", "lower"}}, {{"name", "r2"}, {"better", "higher"}}}}}},
            {"total_epochs", epochs},
            {"time", {{"seconds", 2.5}}}};
  }

  static json document(double rate, const json& hidden) {
    return {{"optimizer", {{"use", "sgd"}, {"learning_rate", rate}}},
            {"model", {{"use", "mlp"}, {"hidden", hidden}}}};
  }

  void given_three_runs() {
    given_run("a-1", 1000, document(0.1, {8}), result(0.5, 2.0, 40));
    given_run("b-1", 3000, document(0.01, {8}), result(0.75, 1.5, 30));
    given_run("c-1", 2000, document(0.1, {8, 8}), nullptr);
  }
};

TEST_F(RunsCommands, ListShowsTheNewestFirstWithStateMetricEpochsAndTime) {
  given_three_runs();

  const json runs = run({"runs", "list", "--json"}).json().at("runs");

  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].at("folder"), "runs/b-1");
  EXPECT_EQ(runs[0].at("name"), "b");
  EXPECT_EQ(runs[0].at("started_at"), "1970-01-01T00:50:00Z");
  EXPECT_EQ(runs[0].at("state"), "finished");
  EXPECT_EQ(runs[0].at("metric"), "rmse") << "the first of the document, not of the alphabet";
  EXPECT_EQ(runs[0].at("value"), 1.5);
  EXPECT_EQ(runs[0].at("epochs"), 30);
  EXPECT_EQ(runs[0].at("seconds"), 2.5);
  EXPECT_EQ(runs[1].at("folder"), "runs/c-1");
  EXPECT_EQ(runs[1].at("state"), "stopped");
  EXPECT_EQ(runs[1].at("epochs"), 2) << "the last line was cut off";
  EXPECT_EQ(runs[1].at("value"), 0.25);
  EXPECT_EQ(runs[1].at("seconds"), 8);
  const std::string text = run({"runs", "list"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("runs/c-1"), HasSubstr("stopped"), HasSubstr("2/40")));
}

TEST_F(RunsCommands, ARunThatAProcessWorksOnIsRunning) {
  given_run("c-1", 2000, document(0.1, {8}), nullptr);
  const std::string lock = write("runs/c-1/.lock", "").string();
  const int file = open(lock.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(file, LOCK_EX), 0);

  EXPECT_EQ(run({"runs", "list", "--json"}).json()["runs"][0]["state"], "running");
  close(file);

  EXPECT_EQ(run({"runs", "list", "--json"}).json()["runs"][0]["state"], "stopped");
}

TEST_F(RunsCommands, ListPassesOverWhatIsNoRunAndSaysWhereNothingCanBeRead) {
  fs::create_directories(folder() / "runs/notes");
  EXPECT_EQ(run({"runs", "list"}).out, "no runs\n");

  const Finished failed = run({"runs", "list", "--dir", "elsewhere"});
  EXPECT_EQ(failed.code, 7);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("elsewhere"), HasSubstr("--dir")));
}

TEST_F(RunsCommands, ADamagedRunIsListedAndCannotBeCompared) {
  given_three_runs();
  write("runs/a-1/workflow.json", "{\"treadle\": 1,");

  const json runs = run({"runs", "list", "--json"}).json().at("runs");

  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[2].at("folder"), "runs/a-1");
  EXPECT_EQ(runs[2].at("state"), "damaged");
  const Finished failed = run({"compare", "runs/a-1", "runs/b-1"});
  EXPECT_EQ(failed.code, 7);
  EXPECT_THAT(failed.err, HasSubstr("runs/a-1/workflow.json"));
}

TEST_F(RunsCommands, CompareShowsMetricsAndTheSettingsThatDiffer) {
  given_three_runs();

  const json runs =
      run({"compare", "runs/a-1", "runs/b-1", "runs/c-1", "--json"}).json().at("runs");

  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].at("metrics"),
            json({{"loss", 4.0}, {"rmse", 2.0}, {"r2", 0.5}, {"epochs", 40}, {"time", 2.5}}));
  EXPECT_EQ(runs[1].at("settings"),
            json({{"optimizer.learning_rate", 0.01}, {"model.hidden", {8}}}));
  EXPECT_TRUE(runs[2].at("metrics").at("r2").is_null());
  const std::string text = run({"compare", "runs/a-1", "runs/b-1"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("optimizer.learning_rate"), HasSubstr("0.01")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("hidden")), Not(HasSubstr("name"))));
}

TEST_F(RunsCommands, CompareSortsTheBestFirst) {
  given_three_runs();
  const auto order = [&](const std::string& by) {
    const json runs = run({"compare", "runs/c-1", "runs/a-1", "runs/b-1", "--json", "--sort", by})
                          .json()
                          .at("runs");
    std::string names;
    for (const json& one : runs)
      names += one.at("run").get<std::string>().substr(5, 1);
    return names;
  };

  EXPECT_EQ(order("r2"), "bac") << "higher is better; no value comes last";
  EXPECT_EQ(order("rmse"), "bac");
  EXPECT_EQ(order("optimizer.learning_rate"), "bca");
  EXPECT_EQ(order("loss"), "bac");
  const Finished failed = run({"compare", "runs/a-1", "--sort", "rms"});
  EXPECT_EQ(failed.code, 2);
  EXPECT_THAT(failed.err, HasSubstr("did you mean \"rmse\"?"));
}

TEST_F(RunsCommands, ComparePrintsCsv) {
  given_three_runs();

  const Finished done = run({"compare", "runs/a-1", "runs/c-1", "--csv"});

  EXPECT_EQ(done.out,
            "run,loss,rmse,r2,epochs,time,model.hidden\n"
            "runs/a-1,4.0,2.0,0.5,40,2.5,[8]\n"
            "runs/c-1,,,,2,8.0,\"[8,8]\"\n");
}

TEST_F(RunsCommands, CompareBreaksAWideTableIntoPieces) {
  given_three_runs();
  if (!terminals_exist())
    GTEST_SKIP() << "this machine gives the test no terminal";
  json many = document(0.2, {8});
  for (int i = 0; i < 20; ++i)
    many["training"]["some_long_setting_" + std::to_string(i)] = i;
  given_run("d-1", 4000, many, result(0.1, 3.0, 10));

  const std::string text = run_on_terminal({"compare", "runs/a-1", "runs/d-1"}).out;

  EXPECT_THAT(text, AllOf(HasSubstr("some_long_setting_0"), HasSubstr("some_long_setting_19")));
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    EXPECT_LE(end - begin, 115U) << "100 columns, and escape codes";
    begin = end + 1;
  }
}

// numpy and scipy: x.mean(), x.std(ddof=1), x.mean() ± t.ppf(0.975, 2) * x.std(ddof=1) / sqrt(3) of
// [0.5, 0.75, 0.625].
TEST_F(RunsCommands, CompareGroupsRepeatedSeedsByMethod) {
  const double r2[]{0.5, 0.75, 0.625};
  for (int seed = 0; seed < 3; ++seed) {
    json repeated = document(0.1, {8});
    repeated["seed"] = seed;
    given_run("a-" + std::to_string(seed), 1000, repeated, result(r2[seed], 2.0, 40));
  }
  json tested = result(0.9, 3.0, 40);
  tested["prequential"] = tested.at("validation");
  tested["prequential"]["recovery"] = {{"metric", "r2"}};
  tested["prequential"]["variances"] = {{"loss", 1.0}, {"metrics", {{"r2", 0.25}}}};
  given_run("b-1", 1000, document(0.01, {8}), tested);
  const std::vector<std::string> all{"runs/a-0", "runs/a-1", "runs/b-1", "runs/a-2"};
  const auto compare = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"compare"};
    words.insert(words.end(), all.begin(), all.end());
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };

  const json compared = compare({"--json"}).json();

  ASSERT_EQ(compared.at("methods").size(), 2U);
  const json& first = compared.at("methods")[0];
  EXPECT_EQ(first.at("runs"), json({"runs/a-0", "runs/a-1", "runs/a-2"}));
  EXPECT_EQ(first.at("settings"), json({{"optimizer.learning_rate", 0.1}}));
  const json& spread = first.at("metrics").at("r2");
  EXPECT_EQ(spread.at("n"), 3);
  EXPECT_NEAR(spread.at("mean").get<double>(), 0.625, 1e-12);
  EXPECT_NEAR(spread.at("std").get<double>(), 0.125, 1e-12);
  EXPECT_NEAR(spread.at("interval")[0].get<double>(), 0.3144827860195309, 1e-9);
  EXPECT_NEAR(spread.at("interval")[1].get<double>(), 0.935517213980469, 1e-9);
  const json& second = compared.at("methods")[1].at("metrics");
  EXPECT_TRUE(second.at("r2").at("interval").is_null()) << "one run has no spread";
  EXPECT_EQ(second.at("r2 variance").at("mean"), 0.25);
  const json& difference = compared.at("differences").at("r2");
  EXPECT_EQ(difference.at("best_mean"), 1);
  EXPECT_EQ(difference.at("not_distinguishable"), json({0, 1}));
  EXPECT_TRUE(difference.at("winner").is_null()) << "one run against three";
  EXPECT_EQ(compared.at("differences").at("rmse").at("best_mean"), 0);
  const std::string text = compare({}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("95 % interval"), HasSubstr("0.3145 to 0.9355"),
                          HasSubstr("r2 (higher is better): best mean: runs/b-1\n"),
                          HasSubstr("Only a test shows")));
}

TEST_F(RunsCommands, CompareExpectsRuns) {
  const Finished none = run({"compare"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("RUN…"));

  fs::create_directories(folder() / "notes");
  const Finished wrong = run({"compare", "notes"});
  EXPECT_EQ(wrong.code, 7);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("notes"), HasSubstr("workflow.json")));
}

TEST_F(RunsCommands, ShowRealRuns) {
  given_points();
  given_document(3);
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);
  ASSERT_EQ(run({"run", "points.json", "--quiet", "--set", "training.epochs=2"}).code, 0);

  const json listed = run({"runs", "list", "--json"}).json().at("runs");
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].at("state"), "finished");
  EXPECT_EQ(listed[0].at("epochs"), 2);
  const json compared = run({"compare", listed[0].at("folder"), listed[1].at("folder"), "--sort",
                             "accuracy", "--json"})
                            .json()
                            .at("runs");
  ASSERT_EQ(compared.size(), 2U);
  EXPECT_TRUE(compared[0].at("metrics").at("accuracy").is_number());
  EXPECT_TRUE(compared[0].at("settings").contains("training.epochs"));
  EXPECT_EQ(compared[0].at("settings").size(), 1U);
}

}  // namespace
}  // namespace treadle
